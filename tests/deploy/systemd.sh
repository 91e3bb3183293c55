#!/usr/bin/env bash
# systemd.sh - gemmd's Debian package and unit under a systemd that runs: a Debian that debootstrap
# makes is booted by systemd-nspawn, and an operator goes by deploy/README.md there. Takes one minute,
# and another one to make the Debian.
set -euo pipefail

usage() {
    cat <<'END'
usage: ./tests/deploy/systemd.sh [--base FOLDER]

  --base FOLDER  a bare Debian that debootstrap made (minbase), of the release that this machine
                 has; one is made if it is not there

Wants root, debootstrap, systemd-nspawn, curl, cpack, and what tests/run.sh has
built: build/release and build/clients-venv; the exit status is
77 where they are not there. What an nspawn container cannot show: limits of memory where this machine
has its controllers in version 1 hierarchies, and devices that work.
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd "$root"
. deploy/progress.sh
logs=$root/build/log
base=
while [ $# -gt 0 ]; do
    case $1 in
    --base) base=${2:?--base wants a folder} && shift ;;
    -h | --help) usage && exit ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift
done

skip() {
    echo "skipped: $*"
    exit 77
}
for tool in debootstrap systemd-nspawn nsenter curl cpack; do
    command -v $tool >/dev/null || skip "there is no $tool"
done
[ "$EUID" = 0 ] || skip "it wants root"
[ -x build/release/server/gemmd ] && [ -x build/release/tests/gemmd_fake ] ||
    skip "there is no build in build/release"
build/clients-venv/bin/python -c 'import httpx, numpy' 2>/dev/null || skip "there is no build/clients-venv"

mkdir -p "$logs"
work=$(mktemp -d)
base=${base:-$work/base}
debian=$work/debian
container= leader=
on_exit() { # in the place of progress.sh's
    [ -z "$running" ] || end_group "$running" 10
    [ -z "$container" ] || { kill -KILL "$leader" "$container" && wait "$container"; } 2>/dev/null || :
    rm -rf --one-file-system "$work"
}

# The release that the package is built on.
suite_here() {
    . /etc/os-release && echo "$VERSION_CODENAME"
}

make_debian() {
    [ -d "$base/etc" ] || logged "$logs/systemd-base.log" debootstrap --variant=minbase "$(suite_here)" "$base"
    cp -a "$base" "$debian"
    cp -L /etc/resolv.conf "$debian/etc/resolv.conf"
    (cd build/release && logged "$logs/systemd-package.log" cpack -G DEB -B "$work/package")
    cp "$work"/package/*.deb "$debian/root/gemmd.deb"
    cp build/release/tests/gemmd_fake "$debian/usr/local/bin/"
    logged "$logs/systemd-packages.log" unshare --mount --pid --fork --kill-child sh -euc '
        mount -t proc proc "$1/proc"
        DEBIAN_FRONTEND=noninteractive chroot "$1" sh -euc "
            apt-get -q update
            apt-get -q -y install --no-install-recommends systemd systemd-sysv dbus openssl procps
            apt-get -q -y install --no-install-recommends /root/gemmd.deb
            systemctl is-enabled gemmd && exit 1 # nothing is started unasked
            apt-get -q -y remove gemmd
            apt-mark manual libgnutls30 libjansson4 libcurl4 || :"' sh "$debian"
}

# boot: sets $leader to systemd. Its network is its own: loopback.
boot() {
    local options=() tick
    # Where no systemd runs, none can be asked for a scope and a control group.
    [ -d /run/systemd/system ] || options=(--register=no --keep-unit)
    SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 setsid systemd-nspawn --directory="$debian" --boot \
        --private-network --capability=CAP_BPF --system-call-filter=bpf --console=pipe "${options[@]}" >"$logs/systemd-boot.log" 2>&1 </dev/null &
    container=$!
    for ((tick = 0; tick < 300; tick++)); do
        leader=$(pgrep --parent "$container" --exact systemd) && [ -S "$debian/run/dbus/system_bus_socket" ] ||
            inside test -S /run/dbus/system_bus_socket 2>/dev/null && break
        kill -0 "$container" 2>/dev/null || { cat "$logs/systemd-boot.log" && skip "systemd-nspawn cannot boot here"; }
        sleep 0.1
    done
    inside systemctl is-system-running --wait || inside systemctl --failed || :
}

inside() {
    nsenter --target "$leader" --all --root --wd env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        HOME=/root LANG=C.UTF-8 SYSTEMD_PAGER=cat SYSTEMD_COLORS=0 "$@"
}

# ask NAME PATH [CURL ARGUMENT...]: with this machine's curl and the key in NAME.key, over TLS.
ask() {
    local name=$1 path=$2
    shift 2
    nsenter --target "$leader" --net curl -sS --cacert "$debian/etc/gemmd/tls.pem" \
        -H "Authorization: Bearer $(cat "$debian/root/$name.key")" "https://localhost:8443$path" "$@"
}

# answers NAME STATUS: whether it is answered so.
answers() {
    ask "$1" /v1/devices -o /dev/null -w '%{http_code}' | grep -x "$2" >/dev/null
}

# load ARGUMENT...: load.py with this machine's Python and the client of ours, in the place of the
# shell: (load ...), or load ... &
load() {
    PYTHONPATH=clients/python/src exec nsenter --target "$leader" --net build/clients-venv/bin/python tests/deploy/load.py \
        --url https://localhost:8443 --ca "$debian/etc/gemmd/tls.pem" --key-file "$debian/root/alice.key" "$@"
}

property() {
    inside systemctl show --value --property "$1" gemmd
}

journal() {
    inside journalctl --quiet --unit gemmd "$@"
}

# wait_for WHAT COMMAND...: until it succeeds, for 30 s at most.
wait_for() {
    local what=$1 tick
    shift
    for ((tick = 0; tick < 150; tick++)); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.2
    done
    journal --lines 30 || :
    die "$what: not within 30 s"
}

# The commands of deploy/README.md, but for the host's name.
set_up() {
    inside sh -euc 'exec 2>&1; set -x
        dpkg -i /root/gemmd.deb
        useradd --system --shell /usr/sbin/nologin gemmd
        mkdir /etc/gemmd
        cd /etc/gemmd
        gemmctl key new alice --roles use,admin --keys keys >/root/alice.key
        gemmctl key new bob --keys keys >/root/bob.key
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost \
            -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout tls.key -out tls.pem
        chown gemmd keys tls.key
        printf "%s\n" "listen = 0.0.0.0:8443" "listen = unix:/run/gemmd/gemmd.sock,mode=0660" \
            "tls-cert = /etc/gemmd/tls.pem" "tls-key = /etc/gemmd/tls.key" "keys = /etc/gemmd/keys" \
            "open-probes = yes" >gemmd.conf
        echo GEMMD_CONFIG=/etc/gemmd/gemmd.conf >/etc/gemmd.conf
        install -d -o gemmd /run/gemmd
        runuser -u gemmd -- gemmd --config gemmd.conf --check
        systemctl enable --now gemmd
        systemctl status gemmd' >"$logs/systemd-set-up.log" || {
        cat "$logs/systemd-set-up.log"
        die "the commands of an operator fail"
    }
    ask alice /v1/transpose -d '[[1,2,3],[4,5,6]]' | grep -F '[[1,4],[2,5],[3,6]]' >/dev/null || die "the answer is wrong"
    tr 0-9 9876543210 <"$debian/root/alice.key" >"$debian/root/wrong.key"
    answers wrong 401 || die "a wrong key is let in"
}

check_sandbox() {
    local pid status line
    inside systemd-analyze security --threshold=15 gemmd | tail -n 1
    pid=$(property MainPID)
    status=$(inside cat "/proc/$pid/status")
    for line in 'CapInh:	0000000000000000' 'CapPrm:	0000000000000000' 'CapEff:	0000000000000000' \
        'CapBnd:	0000000000000000' 'CapAmb:	0000000000000000' 'NoNewPrivs:	1' 'Seccomp:	2'; do
        grep -qF "$line" <<<"$status" || die "its status has no line '$line'"
    done
    # Had it not been able to install a filter of its own, it would have said so.
    [ -z "$(journal GEMMD_EVENT=sandbox)" ] || die "gemmd could not enter its sandbox"
}

# The unit's bounds, with a program that tries them in the place of gemmd. There is no driver: an
# NVIDIA device that may be opened is one that does not work (ENXIO), and another may not be (EPERM).
check_bounds() {
    inside sh -euc '
        { echo "Character devices:"; echo "195 nvidia"; echo "511 nvidia-uvm"; cat /proc/devices; } >/run/devices
        mount --bind /run/devices /proc/devices # of which systemd has the numbers of names
        for node in "nvidia0 195 0" "nvidiactl 195 255" "nvidia-uvm 511 0" "other 194 0"; do
            set -- $node
            mknod -m 666 "/dev/$1" c "$2" "$3"
        done
        unit=/run/systemd/system/bounds.service
        sed "s|^Type=.*|Type=oneshot|; s|^ExecStart=.*|ExecStart=/bin/sh /usr/local/bin/bounds|; /^ExecReload/d
            /^WatchdogSec/d; /^Restart/d; s/=gemmd$/=bounds/" /lib/systemd/system/gemmd.service >$unit
        cat >/usr/local/bin/bounds <<"END"
exec 2>&1
for name in nvidia0 nvidiactl nvidia-uvm other null; do
    echo "$name: $(head -c 0 "/dev/$name" 2>&1 && echo opened)"
done
for folder in / /etc /usr /var /run /home; do
    ! echo >"$folder/written" || echo "wrote to $folder"
done
ls /root /home/somebody && echo "sees the homes of others"
mount -t tmpfs none /tmp && echo mounted
unshare --user true && echo "has a user namespace"
echo >/tmp/written && echo >/run/bounds/written && echo "its own folders"
END
        mkdir -p /home/somebody
        systemctl daemon-reload
        systemctl start bounds
        journalctl --quiet --unit bounds --output cat
        umount /proc/devices; rm $unit; systemctl daemon-reload' >"$logs/systemd-bounds.log" || {
        cat "$logs/systemd-bounds.log"
        die "the bounds could not be tried"
    }
    local line
    for line in 'nvidia0: .*No such device or address' 'nvidiactl: .*No such device or address' \
        'nvidia-uvm: .*No such device or address' 'other: .*Operation not permitted' 'null: opened' 'its own folders'; do
        grep -q "$line" "$logs/systemd-bounds.log" || die "no line '$line' in build/log/systemd-bounds.log"
    done
    ! grep -E '^(wrote|sees|mounted|has) ' "$logs/systemd-bounds.log" || die "the unit allows that"
}

check_journal() {
    ask alice /v1/flip -d '[[1]]' -o /dev/null
    wait_for "the request in the journal" has_entry '"GEMMD_PATH":"/v1/flip"' \
        GEMMD_EVENT=request GEMMD_KEY=alice GEMMD_STATUS=200
    wait_for "the wrong key in the journal" has_entry '"GEMMD_CODE":"unauthorized"' GEMMD_EVENT=audit GEMMD_KEY=none
}

# has_entry TEXT MATCH...: an entry of the journal with these fields, and this in it.
has_entry() {
    local text=$1
    shift
    journal --output json "$@" | grep -F "$text" >/dev/null
}

# Keys that come and go and a new certificate, while clients work: not one request is lost.
check_reload() {
    local turn
    load --retries 0 >"$work/load" 2>&1 &
    local clients=$!
    sleep 0.5
    for ((turn = 0; turn < 8; turn++)); do
        inside sh -euc 'cd /etc/gemmd; gemmctl -q key new guest --keys keys >/root/guest.key; systemctl reload gemmd'
        wait_for "a new key is let in" answers guest 200
        inside sh -euc 'cd /etc/gemmd; gemmctl -q key revoke guest --keys keys; systemctl reload gemmd'
        wait_for "a revoked key is kept out" answers guest 401
    done
    kill $clients
    wait $clients || { cat "$work/load" && die "requests were lost by a reload"; }
    note "$turn times two reloads: $(cat "$work/load")"
}

# A restart, an upgrade and a stop with clients at work: what was accepted is answered, and they go on by themselves.
check_stop() {
    load --seconds 5 >"$work/load" 2>&1 &
    local clients=$!
    sleep 1
    inside systemctl restart gemmd
    wait $clients || { cat "$work/load" && die "a client did not get over a restart"; }
    note "a restart: $(cat "$work/load")"
    local before
    before=$(property MainPID)
    load --seconds 5 >"$work/load" 2>&1 &
    clients=$!
    sleep 1
    inside dpkg -i /root/gemmd.deb >"$logs/systemd-upgrade.log" 2>&1 || die "no upgrade: see build/log/systemd-upgrade.log"
    wait $clients || { cat "$work/load" && die "a client did not get over an upgrade"; }
    [ "$(property MainPID)" != "$before" ] || die "an upgrade leaves the old gemmd running"
    note "an upgrade: $(cat "$work/load")"
    load --seconds 2 --until-refused >"$work/load" 2>&1 &
    clients=$!
    sleep 1
    inside systemctl stop gemmd
    wait $clients || { cat "$work/load" && die "requests were lost by a stop"; }
    [ "$(property Result)" = success ] || die "a stop ends with $(property Result)"
    note "a stop: $(cat "$work/load")"
}

was_restarted() {
    [ "$(property NRestarts)" -ge "$1" ]
}

# A device that is lost again and again, and clients that do not notice; then a cause that stays.
check_lost_device() {
    inside sh -euc 'mkdir -p /run/systemd/system/gemmd.service.d
        printf "%s\n" "[Service]" ExecStart= ExecStart=gemmd_fake Environment=FAKE_LOSE_AT=20 \
            >/run/systemd/system/gemmd.service.d/fake.conf
        systemctl daemon-reload
        systemctl start gemmd'
    (load --requests 100 --threads 1 --parameter kernel=naive) >"$work/load" 2>&1 || {
        cat "$work/load"
        die "a client did not get over a lost device"
    }
    [ "$(property NRestarts)" -ge 4 ] || die "it was restarted $(property NRestarts) times only"
    note "$(property NRestarts) lost devices: $(cat "$work/load")"
    # More failures in ten seconds than systemd bears by default: the address is not there.
    inside sh -euc 'printf "%s\n" "[Service]" ExecStart= "ExecStart=gemmd --listen 192.0.2.1:8443" RestartSec=0.2 \
            >/run/systemd/system/gemmd.service.d/fake.conf
        systemctl daemon-reload
        systemctl restart gemmd 2>/dev/null || :'
    wait_for "ten starts in vain" was_restarted 10
    inside sh -euc 'rm -r /run/systemd/system/gemmd.service.d && systemctl daemon-reload'
    wait_for "a start at last" inside systemctl is-active gemmd
}

# It stops answering: systemd ends it and starts it anew.
check_watchdog() {
    inside sh -euc 'mkdir -p /run/systemd/system/gemmd.service.d
        printf "%s\n" "[Service]" WatchdogSec=2 >/run/systemd/system/gemmd.service.d/watchdog.conf
        systemctl daemon-reload
        systemctl restart gemmd
        kill -STOP $(systemctl show --value --property MainPID gemmd)'
    wait_for "a restart by the watchdog" was_restarted 1
    wait_for "it is back" ask alice /healthz --fail
}

check_reboot() {
    kill -s RTMIN+3 "$leader"
    wait "$container" || :
    boot
    wait_for "gemmd after a reboot" ask alice /healthz --fail
    inside sh -euc 'dpkg --purge gemmd; ! systemctl cat gemmd 2>/dev/null; ! pidof gemmd' \
        >"$logs/systemd-purge.log" 2>&1 || die "the package does not go: see build/log/systemd-purge.log"
}

steps_total=8
step "A Debian with systemd, and the package"
make_debian
boot
step "From the package to a service with keys and TLS"
set_up
step "Sandbox and bounds"
check_sandbox
check_bounds
step "The journal"
check_journal
step "Reloads under load"
check_reload
step "A restart, an upgrade and a stop under load"
check_stop
step "Lost devices, and a daemon that hangs"
check_lost_device
check_watchdog
step "A reboot"
check_reboot
note "the unit does what SECURITY.md and deploy/README.md say of it"
