{ # One command, read to its end before it runs: what follows it on this input is data.
printf '\niolens-far: %s %s\n' "$(uname -s)" "$(uname -m)"
IFS= read -r program || exit 1
if [ -n "$program" ]; then
    program=$(command -v -- "$program") || { printf 'iolens-far: missing\n'; exit 1; }
    printf 'iolens-far: go\n'
    exec "$program" worker --keep
fi
umask 077
place=${TMPDIR:-/tmp}
# What is ours and nothing was done with for an hour was left by a start that was killed. A folder
# of the user's may have such a name too, and has something else in it.
for old in "$place"/iolens.??????; do
    [ -n "$(find "$old" -prune -type d -user "$(id -u)" -mmin +60 2>/dev/null)" ] || continue
    [ -z "$(find "$old" ! -path "$old" ! -path "$old/iolens" 2>/dev/null)" ] || continue
    [ -z "$(find "$old" ! -mmin +60 2>/dev/null)" ] || continue
    rm -f "$old/iolens"
    rmdir "$old" 2>/dev/null
done
folder=$(mktemp -d "$place/iolens.XXXXXX") || { printf 'iolens-far: no room\n'; exit 1; }
trap 'rm -rf "$folder"' 0
trap 'exit 1' 1 2 13 15
printf 'iolens-far: send\n'
read -r bytes sum || exit 1
head -c "$bytes" >"$folder/iolens" || { printf 'iolens-far: no room\n'; exit 1; }
[ "$(wc -c <"$folder/iolens")" -eq "$bytes" ] || { printf 'iolens-far: cut off\n'; exit 1; }
if command -v cksum >/dev/null; then
    set -- $(cksum <"$folder/iolens")
    [ "$1" = "$sum" ] || { printf 'iolens-far: cut off\n'; exit 1; }
fi
chmod 700 "$folder/iolens" || exit 1
printf 'iolens-far: go\n'
"$folder/iolens" worker --keep --remove "$folder"
exit
}
