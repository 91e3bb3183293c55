#!/usr/bin/env bash
# cluster.sh - deploy/kubernetes.yaml in a Kubernetes of one node, which is started here in namespaces
# of its own: secrets, probes, limits, a container that is ended or loses its device, a pod that is
# deleted while clients are at work. Takes four minutes.
set -euo pipefail

usage() {
    cat <<'END'
usage: ./tests/deploy/cluster.sh [--binaries FOLDER]

  --binaries FOLDER  where kube-apiserver, kube-controller-manager, kube-scheduler and kubelet are, if
                     not in $PATH

Wants root, these programs, kubectl, containerd, etcd, runc, catatonit, buildah, the plugins in
/usr/lib/cni, and what tests/run.sh has built: build/release and build/clients-venv; the exit status is
77 where they are not there. Debian has packages of all but the four; its source package `kubernetes`
has them (make WHAT="cmd/kube-apiserver cmd/kube-controller-manager cmd/kube-scheduler cmd/kubelet").
Not shown: what a network does with the NetworkPolicy, and the device plugin for GPUs.
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd "$root"
. deploy/progress.sh
logs=$root/build/log/cluster
while [ $# -gt 0 ]; do
    case $1 in
    --binaries) PATH=$(cd "${2:?--binaries wants a folder}" && pwd -P):$PATH && shift ;;
    -h | --help) usage && exit ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift
done

skip() {
    echo "skipped: $*"
    exit 77
}
for tool in kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl containerd etcd runc catatonit \
    buildah openssl curl; do
    command -v $tool >/dev/null || skip "there is no $tool"
done
[ "$EUID" = 0 ] || skip "it wants root"
[ -x /usr/lib/cni/bridge ] || skip "there is no /usr/lib/cni/bridge"
[ -x build/release/server/gemmd ] && [ -x build/release/tests/gemmd_fake ] ||
    skip "there is no build in build/release"
build/clients-venv/bin/python -c 'import httpx, numpy' 2>/dev/null || skip "there is no build/clients-venv"

mkdir -p "$logs"
work=$(mktemp -d)
node=
on_exit() { # in the place of progress.sh's
    [ -z "$running" ] || end_group "$running" 10
    [ -z "$node" ] || { kill -KILL "$node" && wait "$node"; } 2>/dev/null || :
    sleep 0.5
    find /sys/fs/cgroup -depth -type d -path '*/kubepods*' -exec rmdir {} + 2>/dev/null || :
    rm -rf --one-file-system "$work"
}

image() {
    STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot buildah --root "$work/storage" --runroot "$work/storage-run" "$@"
}

# save NAME FOLDER CONFIGURATION...: an image localhost/NAME:0.1.0 of what is in the folder, as NAME.tar.
save() {
    local name=localhost/$1:0.1.0 archive=$work/$1.tar folder=$2 container
    shift 2
    container=$(image from scratch)
    image copy --quiet "$container" "$folder" / >/dev/null
    image config "$@" "$container"
    image commit --quiet "$container" "$name" >/dev/null
    image push --quiet "$name" "docker-archive:$archive:$name"
}

# The program and its libraries, with the settings of deploy/Dockerfile; and what holds a pod's namespaces.
make_images() {
    local folder=$work/gemmd file
    mkdir -p "$folder/usr/bin" "$folder/etc" "$work/pause"
    install -d --mode=1777 "$folder/tmp"
    cp build/release/server/gemmd build/release/tests/gemmd_fake "$folder/usr/bin/"
    for file in $(ldd build/release/server/gemmd build/release/tests/gemmd_fake | grep -o '/[^ ]*[0-9]' | grep '^/lib' | sort -u); do
        install -D "$file" "$folder$file"
    done
    save gemmd "$folder" --user 65532:65532 --env GEMMD_LISTEN=0.0.0.0:8080 \
        --env OPENBLAS_NUM_THREADS=1 --stop-signal SIGTERM --entrypoint '["/usr/bin/gemmd"]'
    cp "$(command -v catatonit)" "$work/pause/"
    save pause "$work/pause" --entrypoint '["/catatonit","-P"]'
}

# What runs in the node's namespaces, as their first process.
write_node() {
    cat >"$work/cni.conflist" <<'END'
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods", "isGateway": true,
  "ipam": {"type": "host-local", "dataDir": "/run/cni-pods", "ranges": [[{"subnet": "10.88.0.0/16"}]]}}]}
END
    mkdir -p "$work/cni" && mv "$work/cni.conflist" "$work/cni/"
    cat >"$work/containerd.toml" <<END
version = 2
root = "$work/containerd"
state = "$work/containerd-run"
[grpc]
address = "$work/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:0.1.0"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "$work/cni"
END
    openssl genrsa -out "$work/account.key" 2048 2>/dev/null
    echo 'operator,operator,1,system:masters' >"$work/tokens"
    cat >"$work/kubeconfig" <<'END'
apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: "https://10.9.0.1:6443", insecure-skip-tls-verify: true}}]
users: [{name: operator, user: {token: operator}}]
contexts: [{name: here, context: {cluster: here, user: operator}}]
current-context: here
END
    { cat /etc/hosts && echo 10.9.0.1 node; } >"$work/hosts"
    cat >"$work/node" <<END
mount --make-rshared /
mount -t tmpfs run /run
mount --bind $work/hosts /etc/hosts
ip link set lo up
ip link add eth0 type veth peer name beyond
ip address add 10.9.0.1/24 dev eth0
ip link set eth0 up
ip link set beyond up
ip route add default via 10.9.0.254
echo 1 >/proc/sys/net/ipv4/ip_forward
containerd --config $work/containerd.toml >$logs/containerd 2>&1 &
etcd --data-dir $work/etcd --listen-peer-urls http://127.0.0.1:2380 >$logs/etcd 2>&1 &
kube-apiserver --etcd-servers=http://127.0.0.1:2379 --cert-dir=$work/certificates --bind-address=10.9.0.1 \
    --token-auth-file=$work/tokens --authorization-mode=AlwaysAllow --disable-admission-plugins=ServiceAccount \
    --service-account-issuer=https://here --service-account-signing-key-file=$work/account.key \
    --service-account-key-file=$work/account.key --service-cluster-ip-range=10.96.0.0/24 >$logs/apiserver 2>&1 &
until kubectl get --raw /healthz >/dev/null 2>&1; do sleep 0.5; done
kube-controller-manager --kubeconfig=$work/kubeconfig --leader-elect=false >$logs/controllers 2>&1 &
kube-scheduler --kubeconfig=$work/kubeconfig --leader-elect=false >$logs/scheduler 2>&1 &
for image in gemmd pause; do
    ctr --address $work/containerd.sock --namespace k8s.io images import $work/\$image.tar
done
kubelet --kubeconfig=$work/kubeconfig --container-runtime=remote --container-runtime-endpoint=unix://$work/containerd.sock \
    --cgroup-driver=cgroupfs --fail-swap-on=false --root-dir=$work/kubelet --node-ip=10.9.0.1 --hostname-override=node \
    --oom-score-adj=0 --eviction-hard= --cert-dir=$work/kubelet/pki --volume-plugin-dir=$work/plugins >$logs/kubelet 2>&1 &
wait
END
}

start_node() {
    write_node
    KUBECONFIG=$work/kubeconfig setsid unshare --mount --net --pid --fork --kill-child --mount-proc bash "$work/node" \
        >"$logs/node" 2>&1 </dev/null &
    node=$!
    wait_for "a node that is ready" 120 sh -c "$(declare -f inside kube); node=$node work=$work
        kube get nodes | grep -q ' Ready '"
}

inside() {
    nsenter --target "$(pgrep --parent "$node")" --mount --net --pid --wd="$work" "$@"
}

kube() {
    inside env KUBECONFIG="$work/kubeconfig" kubectl "$@"
}

# wait_for WHAT SECONDS COMMAND...
wait_for() {
    local what=$1 end=$((SECONDS + $2))
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || {
            kube describe pods >"$logs/pods" 2>&1 || :
            kube logs deployment/gemmd >"$logs/gemmd" 2>&1 || :
            die "$what: not in time; see build/log/cluster"
        }
        sleep 0.5
    done
}

pod() { # FIELD: of the pod that is not on its way out
    kube get pods --output=jsonpath="{range .items[*]}{.metadata.deletionTimestamp}:{$1}{\"\\n\"}{end}" | sed -n 's/^://p'
}

ready() {
    [ "$(pod .status.containerStatuses[0].ready)" = true ]
}

restarted() { # TIMES
    [ "$(pod .status.containerStatuses[0].restartCount)" -ge "$1" ]
}

# ask PATH [CURL ARGUMENT...]: the pod, by the name in its certificate.
ask() {
    local path=$1
    shift
    inside curl -sS --cacert "$work/tls.pem" --resolve "gemmd:8080:$(pod .status.podIP)" "https://gemmd:8080$path" "$@"
}

# load ARGUMENT...: in the place of the shell: (load ...), or load ... &
load() {
    printf '%s\n' "$(cat /etc/hosts)" "10.9.0.1 node" "$(pod .status.podIP) gemmd" >"$work/hosts"
    PYTHONPATH=$root/clients/python/src exec nsenter --target "$(pgrep --parent "$node")" --mount --net \
        "$root/build/clients-venv/bin/python" "$root/tests/deploy/load.py" --url https://gemmd:8080 \
        --ca "$work/tls.pem" --key-file "$work/me.key" "$@"
}

# The commands at the head of deploy/kubernetes.yaml.
apply() {
    (
        cd "$work"
        "$root/build/release/clients/c/gemmctl" --quiet key new me --roles use,read --keys keys >me.key
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=gemmd \
            -addext subjectAltName=DNS:gemmd,DNS:localhost -keyout tls.key -out tls.pem 2>/dev/null
    )
    kube create secret generic gemmd-keys --from-file="$work/keys"
    kube create secret tls gemmd-tls --cert "$work/tls.pem" --key "$work/tls.key"
    sed '/nvidia.com\/gpu/d; s|image: gemmd|image: localhost/gemmd|' deploy/kubernetes.yaml >"$work/gemmd.yaml"
    kube api-versions | grep -qx policy/v1 || sed -i 's|policy/v1$|policy/v1beta1|' "$work/gemmd.yaml"
    kube apply --filename "$work/gemmd.yaml"
    wait_for "a pod that is ready" 60 ready
}

check_answers() {
    local bearer
    bearer="Authorization: Bearer $(cat "$work/me.key")"
    ask /v1/transpose -H "$bearer" -d '[[1,2,3],[4,5,6]]' | grep -F '[[1,4],[2,5],[3,6]]' >/dev/null || die "the answer is wrong"
    ask /v1/devices -o /dev/null -w '%{http_code}' | grep -x 401 >/dev/null || die "it lets in whoever has no key"
    ask /v1/stats -H "$bearer" | grep -F '"memory_limit": 8589934592' >/dev/null || die "--memory-limit is not half of the pod's 16 GiB"
    [ "$(kube get poddisruptionbudget gemmd --output=jsonpath='{.status.disruptionsAllowed}')" = 1 ] ||
        die "the disruption budget would keep a node from being emptied"
    kube port-forward service/gemmd 8443:443 >"$logs/port-forward" 2>&1 &
    wait_for "an answer through the service" 20 inside curl -sS --fail --cacert "$work/tls.pem" -H "$bearer" \
        https://localhost:8443/v1/devices
    kill $!
}

check_deletion() {
    load --until-refused >"$work/load" 2>&1 &
    local clients=$!
    sleep 1
    kube delete pod --selector app.kubernetes.io/name=gemmd --wait=false >/dev/null
    wait $clients || { cat "$work/load" && die "requests were lost when the pod was deleted"; }
    note "a pod is deleted: $(cat "$work/load")"
    wait_for "another pod" 60 ready
}

check_liveness() {
    inside pkill -STOP -u 65532 -x gemmd
    wait_for "a restart of what does not answer" 120 restarted 1
    wait_for "it is ready again" 60 ready
}

check_lost_device() {
    sed 's|^          image: .*|&\n          command: [/usr/bin/gemmd_fake]|
        s|^          env:|&\n            - {name: FAKE_LOSE_AT, value: "30"}|' "$work/gemmd.yaml" >"$work/fake.yaml"
    kube delete deployment gemmd >/dev/null
    kube apply --filename "$work/fake.yaml" >/dev/null
    wait_for "a pod with a device that will be lost" 90 ready
    (load --requests 70 --threads 1 --parameter kernel=naive) >"$work/load" 2>&1 || {
        cat "$work/load"
        die "a client did not get over a lost device"
    }
    restarted 2 || die "it was not restarted twice"
    note "two lost devices: $(cat "$work/load")"
}

steps_total=5
step "Images, and a cluster of one node"
make_images
start_node
step "deploy/kubernetes.yaml"
apply >"$logs/apply"
check_answers
step "A pod is deleted while clients are at work"
check_deletion
step "A container that does not answer"
check_liveness
step "A device that is lost"
check_lost_device
note "the pod starts, answers, is restarted and ends as deploy/kubernetes.yaml says"
