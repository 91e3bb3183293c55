"""What a refusal must look like."""

import re

import wire


def check(reply, status, code, detail=""):
    """The status, the code, a detail that matches, and every member of a problem document."""
    assert reply.status == status, reply
    assert reply.media_type == wire.PROBLEM, reply
    problem = reply.json()
    assert problem["code"] == code, problem
    assert re.search(detail, problem["detail"], re.IGNORECASE | re.DOTALL), problem["detail"]
    names = {"type", "title", "status", "code", "detail", "error", "request_id"}
    assert names <= set(problem), problem
    assert problem["status"] == status
    assert problem["type"] == f"urn:gemmd:error:{code}"
    assert problem["error"] == problem["detail"]
    assert problem["title"] and problem["title"] != problem["detail"]
    assert problem["request_id"] == reply.header("X-Request-Id")
    assert reply.header("Gemmd-Stats") is None


def check_one_of(reply, answers, detail=""):
    seen = f"{reply.status} {reply.code}"
    answers = answers.split(" or ")
    status, code = (seen if seen in answers else answers[0]).split()
    check(reply, int(status), code, detail)
