package permission_test

import (
	"testing"

	"keen/internal/permission"
)

// everyday are commands that an agent runs all the time to look around. What
// is done against code hidden in names and values must not get in their way.
var everyday = append(commands(`
for i in 1 2 3; do echo $i; done
for i in {1..5}; do echo "$i"; done
for i in $(seq 1 5); do echo $((i * 2)); done
for ((i = 0; i < 3; i++)); do echo "$i"; done
for f in a.go b.go; do echo "== $f"; head -n 5 "$f"; done
for f in *.md; do echo "$f"; done
i=0; while [ $i -lt 3 ]; do echo $i; i=$((i + 1)); done
i=0; while ((i < 3)); do echo $i; ((i++)); done
i=0; until [[ $i -ge 3 ]]; do echo $i; let i++; done
i=0; let i=i+1; let "i += 2"; echo $i
echo $((1+2))
echo $(( (1 + 2) * 3 % 4 ))
echo $((0x1F + 2#101))
echo $((RANDOM % 10))
x=5; echo $((x + 1)) $((x > 3 ? 1 : 0))
x=5; y=$((x * 2)); z=$y; echo $((z - x))
n=$(wc -l < f); echo $((n + 1))
n=$(ls | wc -l); if [ "$n" -gt 3 ]; then echo many; fi
n=$(grep foo a.go 2>/dev/null | wc -l); if ((n > 3)); then echo many; fi
start=$(date +%s); ls; end=$(date +%s); echo "$((end - start))s"
count=0; for f in *.md; do count=$((count + 1)); done; echo "$count files"
x=abcdef; echo ${x:0:3}
x=abcdef; echo "${x: -2}" "${x:1}" "${#x}"
x=abcdef; n=2; echo ${x:n:1} ${x:$n}
f=a.tar.gz; echo "${f%.gz}" "${f##*.}" "${f/tar/zip}" "${f^^}" "${f@Q}"
echo "${x:-none}" || true; x=1
a=(one two three); echo "${a[0]}" "${a[@]}" "${#a[@]}" "${!a[@]}"
a=(one two three); for i in 0 1 2; do echo "${a[i]}" "${a[$i]}"; done
a=(one two); a+=(three); a[3]=four; echo "${a[-1]}" "${a[@]:1:2}"
a=(1 2 3); sum=0; for n in "${a[@]}"; do sum=$((sum + n)); done; echo $sum
declare -A m; m[go]=1; m[js]=2; for k in "${!m[@]}"; do echo "$k=${m[$k]}"; done
declare -A seen; for w in a b a; do seen[$w]=1; done; echo "${#seen[@]}"
declare -a list=(a b); echo "${list[0]}"
declare -i n=5; n=n+1; echo $n
declare x=1; readonly y=2; echo $x $y
x=1; [[ $x == y ]]; echo $?
x=y; [[ $x == y && -n $x ]] && echo same
[[ 3 -gt 2 ]] && echo yes
[[ $# -eq 0 ]] && echo none
[[ -f a.go && ! -d b.go ]] && echo ok
[[ abc =~ ^a(.)c$ ]] && echo "${BASH_REMATCH[1]}"
x=1; [[ -v x ]] && echo set
x=3; [ "$x" -eq 3 ] && [ $x -lt 5 ] && echo ok
[ -n "$(ls)" ] && echo some
[ -z "${x+set}" ]; x=1
[ "$(wc -l < f)" -gt 10 ] && echo long
[ $? -eq 0 ] && echo ok
[ -e f -a -r f ] && echo readable
test -d sub && echo dir
if test "$(git rev-parse HEAD)" = x; then echo same; fi
case a.go in *.go) echo go;; *) echo other;; esac
read -r line < f; echo "$line"
IFS=, read -r a b < f || true; echo "$a"
while IFS= read -r line; do echo "$line"; done < f
cat f | while read -r a b; do echo "$b $a"; done
git log --oneline | head -5 | while read -r hash rest; do echo "$hash"; done
mapfile -t lines < f; echo "${lines[0]} ${#lines[@]}"
printf '%s\n' one two three
printf "%-10s %5d\n" name 3
printf -v padded %05d 7; echo $padded
x=7; printf '%d items\n' "$x"
unset x; echo "${x:-gone}"; x=1
sleep 0 & wait
sleep 0 & pid=$!; wait $pid; echo $?
sleep 0 & wait "$!"
set -e; set -o pipefail; ls | head -1
opts=-la; ls $opts
opts="-l -a"; ls $opts sub
dir=sub; ls "$dir"; find "$dir" -name '*.go' | sort
dir=sub/deep; for f in "$dir"/*; do echo "$f"; done || true
p=main; grep -rn "$p" sub
p="func main"; grep -n "$p" a.go b.go
file=a.go; wc -l < "$file"; tail -n +1 "$file" | head -n 3
d=sub; (cd "$d" && ls -la)
name=x; echo "$name.txt" "${name}_y" "$name/$name"
greet() { echo hello; }; greet; greet
first() { head -n 1 a.go; }; first | tr a-z A-Z
echo "$(basename sub/c.go .go)" "$(dirname sub/c.go)"
echo {a,b}{1,2} {1..3}
echo "a b" | tr ' ' '\n' | sort -u | nl
ls -1 | awk 'NR <= 3' | cat -n
diff <(ls sub) <(ls .) | head -3
! grep -q nothing a.go && echo absent
true && { echo a; echo b; } || echo c
trap 'echo done' EXIT; ls
trap - INT; ls
time (ls; ls sub)
seq 3 | paste -sd+ | cat
date -u +%Y-%m-%d; uname -sr; nproc; pwd
cat a.go b.go 2>/dev/null | head -c 100
git log --since=1.week --format='%h %s' | head
git show --stat HEAD | tail -3
find . -type f -size +1k -printf '%s %p\n' | sort -rn | head -5
grep -rlE 'TODO|FIXME' --include='*.go' . | sort | uniq -c
sort -t, -k2,2n -k1,1r f | uniq -d
xxd f | head -2; od -c f | head -2
stat -c '%n %s' a.go; du -sh sub; file a.go
`), "cat <<E\n$((1 + 2)) ${#HOME}\nE", "x=3\nif ((x > 2)); then\n  echo big\nfi", "n=0\nwhile read -r line; do\n  n=$((n + 1))\ndone < f\necho $n")

func TestEverydayReadingPassesWithoutAQuestion(t *testing.T) {
	g := project(t)
	for _, command := range everyday {
		if got := permission.ClassifyCommand(command, g); got.Verdict != permission.VerdictAllow {
			t.Errorf("%q is asked about: %s", command, got.Reason)
		}
	}
	t.Logf("%d commands", len(everyday))
}
