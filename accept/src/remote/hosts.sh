# Two network namespaces that stand for two hosts, with a real sshd in the second one. Called as
# root as the first process of a pid namespace, in a network and a mount namespace of its own: that
# is the first host, and all of it goes with this process, whatever ends it.
#
#   hosts.sh FOLDER
#
# It says `ready` and stays. FOLDER then has far.pid, a process of the second host, and config,
# with which ssh(1) finds the host `far`.
set -eu
folder=$1

# What is written below /run, locks and names of namespaces, goes with this namespace too.
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd /run/netns /run/lock
chmod 1777 /run/lock

ip link set lo up
unshare --net sleep infinity &
far=$!
# The namespace is there when it is another one than ours.
until [ "$(readlink /proc/$far/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do :; done
echo "$far" >"$folder/far.pid"
ip netns attach far "$far"
there() { nsenter -t "$far" -n "$@"; }

ip link add near type veth peer name far netns "$far"
ip addr add 10.77.0.1/24 dev near
ip link set near up
there ip link set lo up
there ip addr add 10.77.0.2/24 dev far
there ip link set far up

ssh-keygen -q -t ed25519 -N '' -f "$folder/host_key"
ssh-keygen -q -t ed25519 -N '' -f "$folder/key"
cp "$folder/key.pub" "$folder/authorized"
chmod 600 "$folder/authorized"
there "$(command -v sshd)" -D -e -f /dev/null -h "$folder/host_key" -p 22 \
    -o AuthorizedKeysFile="$folder/authorized" -o StrictModes=no -o UsePAM=no \
    -o PidFile="$folder/sshd.pid" 2>"$folder/sshd.log" &
cat >"$folder/config" <<END
Host far
    HostName 10.77.0.2
    User root
    IdentityFile $folder/key
    IdentitiesOnly yes
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
    ServerAliveInterval 2
    ServerAliveCountMax 2
    ConnectTimeout 5
END
tries=0
until ssh -F "$folder/config" far true 2>"$folder/ssh.log"; do
    tries=$((tries + 1))
    [ "$tries" -lt 50 ] || { cat "$folder/ssh.log" "$folder/sshd.log" >&2; exit 1; }
    sleep 0.1
done
echo ready
exec sleep infinity
