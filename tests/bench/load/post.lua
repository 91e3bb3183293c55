-- What wrk sends, over and over: the file GM_BODY, of the media type GM_TYPE; for the Open Inference
-- Protocol, GM_JSON_BYTES says how many bytes of it are JSON. GM_KEYS is a file of keys, one a line: each
-- request has the next. At the end it says in one line for load.py: requests, then microseconds, bytes,
-- errors, replies that are not 2xx or 3xx, and the latency's median and 99th percentile in microseconds.

local file = assert(io.open(os.getenv("GM_BODY"), "rb"))
wrk.method = "POST"
wrk.headers["Content-Type"] = os.getenv("GM_TYPE")
if os.getenv("GM_CLOSE") == "1" then wrk.headers["Connection"] = "close" end
wrk.headers["Inference-Header-Content-Length"] = os.getenv("GM_JSON_BYTES")
wrk.body = file:read("*a")
file:close()

-- The requests are made before the clock runs.
local requests, next_request = {}, 0
if (os.getenv("GM_KEYS") or "") ~= "" then
    function init()
        for key in io.lines(os.getenv("GM_KEYS")) do
            wrk.headers["Authorization"] = "Bearer " .. key
            requests[#requests + 1] = wrk.format()
        end
    end

    function request()
        next_request = next_request % #requests + 1
        return requests[next_request]
    end
end

function done(summary, latency)
    local e = summary.errors
    io.write(string.format("GM %d %d %.0f %d %d %.3f %.3f\n", summary.requests,
        summary.duration, summary.bytes, e.connect + e.read + e.write + e.timeout, e.status,
        latency:percentile(50), latency:percentile(99)))
end
