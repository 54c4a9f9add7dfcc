# Run by `unshare --mount`: what is mounted here goes with this process.
# $1 kind of file system, $2 folder of ours, $3 the tool, $4 readers, $5 copiers, $6 writers
kind=$1 home=$2 tool=$3 readers=$4 copiers=$5 writers=$6
place=$home/mount said=$home/said
mkdir -p "$place" "$said" "$home/lower" "$home/layers" || exit 8

mounted() {
    case $kind in
    ext4 | xfs | btrfs)
        truncate -s 3G "$home/image" && "mkfs.$kind" -q "$home/image" >&2 &&
            mount -o loop "$home/image" "$place" ;;
    tmpfs) mount -t tmpfs -o size=3G tmpfs "$place" ;;
    overlay)
        mount -t tmpfs -o size=3G tmpfs "$home/layers" &&
            mkdir "$home/layers/upper" "$home/layers/work" &&
            mount -t overlay -o "lowerdir=$home/lower,upperdir=$home/layers/upper,workdir=$home/layers/work" \
                overlay "$place" ;;
    fuse) bindfs "$home/lower" "$place" ;;
    failing)
        truncate -s 1G "$home/image" && mkfs.ext4 -q "$home/image" >&2 &&
            mount -o loop "$home/image" "$place" && cp "$home/source" "$place/f" &&
            umount "$place" && mount -o loop,ro,noload "$home/image" "$place" ;;
    quota)
        truncate -s 4G "$home/image" && mkfs.btrfs -q "$home/image" >&2 &&
            mount -o loop "$home/image" "$place" && btrfs -q quota enable "$place" &&
            btrfs -q subvolume create "$place/limited" && mkdir "$home/top" &&
            btrfs -q qgroup limit 20M "$place/limited" && mount --move "$place" "$home/top" &&
            mount --bind "$home/top/limited" "$place" ;;
    esac
}

left() {
    cd /
    umount "$place" 2>/dev/null || fusermount3 -uz "$place" 2>/dev/null
    [ ! -d "$home/top" ] || umount "$home/top"
}
trap left EXIT
mounted || exit 9
cd "$place" || exit 9
[ "$kind" = failing ] || [ "$kind" = quota ] || { cp "$home/source" f && sync -f f; } || exit 9

step() {
    name=$1
    shift
    "$tool" "$@" >"$said/$name.out" 2>"$said/$name.err"
    echo $? >"$said/$name.code"
}

# Starts a run, and has the shell go on once one of its trials has ended.
begin() {
    name=$1
    shift
    : >"$said/$name.err"
    "$tool" "$@" --quick --passes 1000 --budget 5m --rounds 3 --threads 1 --progress plain \
        >"$said/$name.out" 2>"$said/$name.err" &
    running=$!
    until grep -q 'committed: pass [2-9]' "$said/$name.err"; do
        kill -0 $running || break
    done
}

finish() {
    wait $running
    echo $? >"$said/$name.code"
}

if [ "$kind" = failing ]; then
    step evicted file read f --block-size 4096 --evict --json
    begin midway run file --file f --allow-evict --cache cold --block-sizes 4KiB --engines read,mmap
    # From now on nothing can be read: a loop device answers EIO behind the end of its file.
    truncate -s 0 "$home/image"
    finish
    step read-read file read f --block-size 4096 --evict --checksum --json
    step read-direct file read f --block-size 4096 --engine direct --json
    step read-mmap file read f --block-size 4096 --evict --engine mmap --json
    step run run file --file f --allow-evict --cache cold --quick --passes 1 --rounds 3 --block-sizes 4KiB \
        --threads 1 --engines read,direct,mmap --progress plain
    exit 0
fi
if [ "$kind" = quota ]; then
    head -c 30M /dev/urandom >"$home/large"
    for engine in $writers; do
        # One file is written with it by other words.
        [ "$engine" != write_dsync ] || continue
        step "write-$engine" file write w --block-size 64KiB --count 480 --engine "$engine" --json
    done
    for engine in $copiers; do
        step "copy-$engine" file copy "$home/large" c --block-size 64KiB --engine "$engine" --json
    done
    again="--quick --passes 1 --rounds 3 --threads 1 --progress plain"
    step run-file run file --dir "$place" --file-size 64MiB --block-sizes 4KiB $again
    step run-write run write --dir "$place" --file-size 4MiB --block-sizes 64KiB \
        --target new,existing --engines write,mmap,direct $again
    step run-copy run copy --dir "$place" --file-sizes 12MiB --engines read_write,dd $again
    ls -A >"$said/left"
    exit 0
fi
for engine in $readers; do
    step "read-$engine" file read f --block-size 4096 --checksum --engine "$engine" --json
done
step write file write w --block-size 64KiB --count 16 --sync fsync --json
rm -f w
for engine in $copiers; do
    step "copy-$engine" file copy f c --block-size 64KiB --verify --engine "$engine" --json
    [ ! -e c ] || cmp f c || echo differs >"$said/changed"
    rm -f c
done
step run run file --dir "$place" --file-size 16MiB --quick --passes 2 --rounds 3 \
    --block-sizes 4KiB,64KiB --threads 1 --cache warm,cold --consumer scan --engines all \
    --progress none
step show show last --json
case $kind in
ext4 | xfs | btrfs)
    step copies run copy --dir "$place" --file-sizes 4MiB --quick --passes 3 --rounds 3 --threads 1 \
        --cache warm,cold --engines all --progress none
    step shown show last --json
    begin interrupted run copy --dir "$place" --file-sizes 1MiB --engines read_write,dd
    # A shell has what it starts in the background ignore SIGINT.
    kill -TERM $running
    finish
    step resumed resume last --allow dir --budget 1s --progress plain
    ;;
esac
cmp f "$home/source" || echo changed >"$said/changed"
rm -rf lost+found
ls -A >"$said/left"
