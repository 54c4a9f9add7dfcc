# Run by `unshare --mount`: what is mounted here goes with this process.
# $1 kind of file system, $2 folder of ours, $3 the tool, $4 readers, $5 copiers
kind=$1 home=$2 tool=$3 readers=$4 copiers=$5
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
    esac
}

left() {
    cd /
    umount "$place" 2>/dev/null || fusermount3 -uz "$place" 2>/dev/null
}
trap left EXIT
mounted || exit 9
cd "$place" || exit 9
[ "$kind" = failing ] || { cp "$home/source" f && sync -f f; } || exit 9

step() {
    name=$1
    shift
    "$tool" "$@" >"$said/$name.out" 2>"$said/$name.err"
    echo $? >"$said/$name.code"
}

if [ "$kind" = failing ]; then
    step evicted file read f --block 4096 --evict --json
    # From now on nothing can be read: a loop device answers EIO behind the end of its file.
    truncate -s 0 "$home/image"
    step read-read file read f --block 4096 --evict --checksum --json
    step read-direct file read f --block 4096 --engine direct --json
    step read-mmap file read f --block 4096 --evict --engine mmap --json
    step run run file --file f --evict --cache cold --quick --passes 1 --rounds 3 --sizes 4KiB \
        --threads 1 --primitives read,direct --progress plain
    exit 0
fi
for engine in $readers; do
    step "read-$engine" file read f --block 4096 --checksum --engine "$engine" --json
done
step write file write w --block 64KiB --count 16 --sync fsync --json
rm -f w
for engine in $copiers; do
    step "copy-$engine" file copy f c --block 64KiB --verify --engine "$engine" --json
    [ ! -e c ] || cmp f c || echo differs >"$said/changed"
    rm -f c
done
step run run file --dir "$place" --file-bytes 16MiB --quick --passes 2 --rounds 3 \
    --sizes 4KiB,64KiB --threads 1 --cache warm,cold --consumer scan --primitives all \
    --progress none
step show show last --json
cmp f "$home/source" || echo changed >"$said/changed"
rm -rf lost+found
ls -A >"$said/left"
