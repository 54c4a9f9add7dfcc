# The source package that belongs to liburing-dev, with lists of our own, and its example.
mkdir -p lists/partial
set -- $(apt-cache madison liburing-dev | head -n 1 | cut -d '|' -f 3)
echo "deb-src $1 ${2%/*} ${2##*/}" >liburing.list
apt() {
    apt-get -o Dir::Etc::sourcelist="$PWD/liburing.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::lists="$PWD/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= "$@"
}
apt update
apt source --download-only liburing
tar xf liburing_*.orig.tar.?z
mv liburing-*/ source
cd source
./configure
make -C src
make -C examples send-zerocopy
