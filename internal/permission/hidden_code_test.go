package permission_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"keen/internal/filesystem"
	"keen/internal/permission"
)

// Bash evaluates some texts that look like names or numbers: as arithmetic, as
// a subscript, as a prompt, as options. These tests put a payload that makes a
// file into such texts in every way they can think of, run the result in a real
// bash, and hold that no form that makes the file passes without a question.

// marker is the file that a payload makes. Its name needs no quotes.
const marker = "marker"

// payloads are texts that make the marker where something evaluates them. None
// holds a single quote or a space.
var payloads = []string{
	"a[$(>marker)]",
	"a[`>marker`]",
	"1+b[a[$(>marker)]]",
	"x=a[$(>marker)]",
	"$(>marker)",
	"($(>marker))",
}

// carriers bring a PAYLOAD into the variable v before BODY uses it. The
// file data holds the payload, code.sh makes the marker.
var carriers = []string{
	"v='PAYLOAD'; BODY",
	"v=PAYLOAD; BODY",
	"v=1; v='PAYLOAD'; BODY",
	"v=1; v+='+PAYLOAD'; BODY",
	"v=$'PAYLOAD'; BODY",
	"v=$(cat data); BODY",
	"v=$(echo 'PAYLOAD'); BODY",
	"v=$(<data); BODY",
	"w='PAYLOAD'; v=$w; BODY",
	"w='PAYLOAD'; v=\"$w\"; BODY",
	"w=1; v=$w; w='PAYLOAD'; v=$w; BODY",
	"read -r v <data; BODY",
	"read -r v <<<'PAYLOAD'; BODY",
	"v=1; \"read\" -r v <data; BODY",
	"v=1; re\"ad\" -r v <data; BODY",
	"v=1; \\read -r v <data; BODY",
	"v=1; command read -r v <data; BODY",
	"v=1; builtin read -r v <data; BODY",
	"v=1; IFS= read -r v <data; BODY",
	"read -ra v <data; BODY",
	"read -r <data; v=$REPLY; BODY",
	"while read -r v; do BODY; done <data",
	"cat data | while read -r v; do BODY; done",
	"cat data | { read -r v; BODY; }",
	"for v in 'PAYLOAD'; do BODY; done",
	"for v in 1 2 'PAYLOAD'; do BODY; done",
	"for v in $(cat data); do BODY; done",
	"for v; do BODY; done",
	"mapfile -t v <data; BODY",
	"v=1; readarray -t v <data; BODY",
	"mapfile -t <data; v=${MAPFILE[0]}; BODY",
	"v=('PAYLOAD'); BODY",
	"v=(1 'PAYLOAD'); BODY",
	"v[0]='PAYLOAD'; BODY",
	"v=([0]='PAYLOAD'); BODY",
	": ${v:='PAYLOAD'}; BODY",
	": \"${v:=PAYLOAD}\"; BODY",
	": ${v='PAYLOAD'}; BODY",
	"printf -v v %s 'PAYLOAD'; BODY",
	"v=1; printf -v v %s 'PAYLOAD'; BODY",
	"v=1; printf -vv %s 'PAYLOAD'; BODY",
	"declare v='PAYLOAD'; BODY",
	"declare 'v=PAYLOAD'; BODY",
	"typeset v='PAYLOAD'; BODY",
	"readonly v='PAYLOAD'; BODY",
	"export v='PAYLOAD'; BODY",
	"v=1; command export v='PAYLOAD'; BODY",
	"v=1; \"declare\" v='PAYLOAD'; BODY",
	"v=1; builtin declare 'v=PAYLOAD'; BODY",
	"v=1; eval \"v='PAYLOAD'\"; BODY",
	"v=1; command eval \"v='PAYLOAD'\"; BODY",
	"v=1; trap \"v='PAYLOAD'\" DEBUG; BODY",
	"v=1; f() { v='PAYLOAD'; }; f; BODY",
	"v=1; f() { local v='PAYLOAD'; BODY; }; f",
	"f() { v=$1; BODY; }; f 'PAYLOAD'",
	"f() { local v=\"$1\"; BODY; }; f 'PAYLOAD'",
	"set -- 'PAYLOAD'; v=$1; BODY",
	"[[ 'PAYLOAD' =~ .* ]]; v=${BASH_REMATCH[0]}; BODY",
	": 'PAYLOAD'; v=$_; BODY",
	"v='PAYLOAD' bash -c 'BODY'",
	"v=1; v='PAYLOAD' bash -c 'BODY'",
	"env v='PAYLOAD' bash -c 'BODY'",
	"export v='PAYLOAD'; bash -c 'BODY'",
	"bash -c 'v=$0; BODY' 'PAYLOAD'",
	"bash -c 'v=$1; BODY' x 'PAYLOAD'",
	"v=1; declare -n w=v; w='PAYLOAD'; BODY",
	"v='PAYLOAD'; v=1; BODY",
	"BODY; v=1",
	"v='PAYLOAD'; (v=1); BODY",
	"v=1; until v='PAYLOAD'; do :; done; BODY",
	"v=1; case x in x) v='PAYLOAD';; esac; BODY",
	"v=1; { v='PAYLOAD'; }; BODY",
	"v=1; true && v='PAYLOAD'; BODY",
	"v=1; if v='PAYLOAD'; then BODY; fi",
	"select v in 'PAYLOAD'; do BODY; break; done <<<1",
	"v=$(printf %s 'PAYLOAD'); BODY",
	"v=`cat data`; BODY",
	"v=${u:-PAYLOAD}; BODY",
	"u='PAYLOAD'; v=${u#z}; BODY",
	"u='PAYLOAD'; v=${u/z/y}; BODY",
	"u='PAYLOAD'; v=${u:0}; BODY",
	"u=(1 'PAYLOAD'); v=${u[1]}; BODY",
	"u=(1 'PAYLOAD'); for v in \"${u[@]}\"; do BODY; done",
	"v=1; OPTIND=1; getopts a v -a; read -r v <data; BODY",
	"v=1; coproc v { cat; }; v='PAYLOAD'; BODY",
	"declare -i v=1; read -r v <data; BODY",
	"declare -u w; v='PAYLOAD'; BODY",
}

// uses evaluate the variable v, or look as if they did. Some of them are
// harmless: which ones is for bash to say.
var uses = []string{
	"echo $((v))", "echo $((v+1))", "echo $(($v))", "echo $((1?v:2))", "echo $(( ${v} ))", "echo $[v]", "echo \"$((v))\"", "echo $((-v))",
	"((v))", "((v++))", "((++v))", "((x=v))", "((v+=1))", "((x=1,v))", "(($v))", "(( \"$v\" ))", "((a[v]))", "((a[$v]=1))", "((v[0]))", "((a[1]=v))",
	"let v", "let x=v", "let \"x=v\"", "let \"x=$v\"", "let x=$v", "\"let\" x=v", "command let x=v", "builtin let \"$v\"", "let v++",
	"echo ${a[v]}", "echo ${a[$v]}", "echo ${a[\"$v\"]}", "echo ${a[v+1]}", "echo ${#a[v]}", "echo ${a[v]:-x}", "echo ${a[v]@Q}", "echo ${a[v]#x}", "echo ${v[0]}",
	"a[v]=1", "a[$v]=1", "a[v]+=1", "a=([v]=1)", "a=([$v]=1)", "a=(\"$v\")", "a=($v)", "a+=([v]=1)", "declare a[v]=1", "declare -a a=([v]=1)", "declare -a \"a=($v)\"",
	"[[ v -eq 0 ]]", "[[ $v -lt 1 ]]", "[[ 1 -ge \"$v\" ]]", "[[ \"$v\" -ne 0 ]]", "[[ ! v -gt 0 ]]", "[[ ( v -le 0 ) ]]", "[[ x && v -eq 0 ]]",
	"[[ -v $v ]]", "[[ -v v ]]", "[[ -v a[v] ]]", "[[ -v a[$v] ]]", "[[ -R $v ]]", "[[ -t $v ]]", "[[ -o $v ]]", "[[ -n $v ]]", "[[ $v == x ]]", "[[ $v =~ x ]]", "[[ x = $v ]]", "[[ $v ]]",
	"test -v \"$v\"", "test -v $v", "[ -v \"$v\" ]", "[ -v a[v] ]", "[ ! -v \"$v\" ]", "[ -n x -a -v \"$v\" ]", "[ \"$v\" -eq 0 ]", "[ $v -eq 0 ]", "[ 0 -lt \"$v\" ]", "[ \"$v\" ]", "[ $v ]",
	"[ -n \"$v\" ]", "[ \"$v\" = x ]", "[ -t \"$v\" ]", "[ -R \"$v\" ]", "[ -o \"$v\" ]", "command test -v \"$v\"", "\"[\" -v \"$v\" ]", "o=-v; [ $o \"$v\" ]", "o=-v; [ \"$o\" \"$v\" ]", "set -- -v \"$v\"; [ \"$@\" ]",
	"w=\"-v $v\"; [ $w ]", "w=\"-v $v\"; [ $w = x ]", "[ \"${v:+-v}\" \"$v\" ]", "v=(-v \"$v\"); [ \"${v[@]}\" ]", "o=$(echo -v); test \"$o\" \"$v\"", "test $(echo -v) \"$v\"",
	"printf -v \"$v\" x", "printf -v $v x", "printf -v a[v] x", "printf -v \"a[$v]\" x", "printf \"-v$v\" x", "w=-v$v; printf \"$w\" x", "printf %d \"$v\"", "printf %i $v", "printf \"%*d\" \"$v\" 1",
	"printf \"%(%s)T\" \"$v\"", "printf %s \"$v\"", "printf \"$v\"", "command printf -v \"$v\" x", "printf -- -v \"$v\" x",
	"read \"$v\" <<<1", "read -r $v <<<1", "read a[v] <<<1", "read \"a[$v]\" <<<1", "read -a \"$v\" <<<1", "read -t \"$v\" x <<<1", "read -n \"$v\" x <<<1", "read -u \"$v\" x", "read -p \"$v\" x <<<1", "read -d \"$v\" x <<<1",
	"mapfile \"$v\" <data", "mapfile -t \"$v\" <data", "mapfile -n \"$v\" x <data", "mapfile -O \"$v\" x <data", "mapfile -s \"$v\" x <data", "mapfile -c \"$v\" x <data", "mapfile -C \"$v\" -c 1 x <data", "mapfile -d \"$v\" x <data", "readarray \"$v\" <data",
	"unset \"$v\"", "unset $v", "unset -v \"$v\"", "unset a[v]", "a=(1); unset \"a[v]\"", "a=(1); unset \"a[$v]\"", "command unset \"$v\"", "unset -n \"$v\"", "a=(1); unset a[\"$v\"]",
	"wait -p \"$v\"", "true & wait -n -p \"$v\"", "true & wait -p \"a[v]\" $!", "wait \"$v\"", "wait $v", "true & wait -n -p$v $!",
	"declare \"$v=1\"", "declare $v", "declare -n n=$v; echo $n", "declare -n n=\"$v\"; n=1", "declare -i n=v", "declare -i n=$v", "declare -i n; n=$v", "declare -i n; n=v", "declare -i n; n+=v", "typeset -i n=v", "readonly -i n=v",
	"declare -ai n; n[0]=v", "declare -i n; read -r n <data", "declare -i n; printf -v n %s \"$v\"", "declare -i n; for n in \"$v\"; do :; done", "declare -i n; mapfile -t n <data", "declare -i n=1; n=(\"$v\")", "f() { local -i n=v; }; f",
	"f() { local -n n=$1; echo $n; }; f \"$v\"", "export \"$v\"", "export -n \"$v\"", "readonly \"$v=1\"", "readonly \"a[$v]=1\"", "typeset \"a[$v]=1\"", "declare \"a[$v]=1\"", "declare \"a[v]=1\"", "export \"a[$v]=1\"",
	"declare -a n=$v", "declare -a n=\"$v\"", "declare -A n=$v", "n=(); declare n=$v", "declare -A n; declare n=$v", "f() { local -a n=$v; }; f", "readonly -a n=$v", "export n=$v", "declare -a n; n=$v", "declare -ar n=$v", "declare -xa n=$v", "typeset -a n+=$v", "declare -a n[0]=$v",
	"declare -p \"$v\"", "declare -f \"$v\"", "declare -g \"$v\"", "declare -x v", "command declare \"$v=1\"", "declare -ia n=(v)",
	"echo ${!v}", "echo \"${!v}\"", "echo ${!v:-x}", "echo ${!v@Q}", "echo ${!v[0]}", "echo ${!a[v]}", "echo ${!v@}", "echo ${!v*}", "a=(1); echo ${!a[@]}", "set -- \"$v\"; echo ${!1}", "set -- \"$v\"; echo ${!#}",
	"echo ${v@P}", "echo \"${v@P}\"", "echo ${v@E}", "echo ${v@Q}", "echo ${v@A}", "echo ${v@U}", "echo ${v@a}", "echo ${v@K}", "a=(\"$v\"); echo \"${a[@]@P}\"", "set -- \"$v\"; echo \"${@@P}\"", "PS1=$v; echo \"${PS1@P}\"",
	"s=abc; echo ${s:v}", "s=abc; echo ${s:$v}", "s=abc; echo ${s:0:v}", "s=abc; echo ${s:0:$v}", "s=abc; echo ${s: -v}", "echo ${@:v}", "echo ${@:1:v}", "a=(1); echo ${a[@]:v}", "a=(1); echo ${a[@]:$v:1}", "s=abc; echo \"${s:v}\"", "echo ${*:v}",
	"getopts ab \"$v\" -a", "getopts \"$v\" x -a", "getopts ab x \"$v\"", "getopts ab a[v] -a", "OPTIND=$v; getopts ab x -a",
	"for ((i=v;i<1;i++)); do :; done", "for ((i=0;i<v;i++)); do break; done", "for ((;v;)); do break; done", "for ((i=0;i<1;i+=v+1)); do break; done", "for i in $((v)); do :; done",
	"exec {a[v]}>/dev/null", "exec {v}>/dev/null", ": {a[v]}>/dev/null", "exec 3>&$((v))",
	"case $((v)) in x) :;; esac", "case x in $((v))) :;; esac", "case $v in x) :;; esac", "echo $((v)) >/dev/null", "cat <<<$((v))", "cat <<<\"${a[v]}\"", "echo ${x:-$((v))}", "echo ${v/x/$((v))}", "echo ${x-${a[v]}}", "x=$((v))", "x[$((v))]=1", "local_=${a[v]}",
	"exit \"$v\"", "(exit $v)", "f() { return \"$v\"; }; f", "shift \"$v\"", "for i in 1; do break \"$v\"; done", "for i in 1; do continue \"$v\"; done", "ulimit -n \"$v\"", "umask \"$v\"", "sleep \"$v\"", "kill -s \"$v\" 0", "kill -l \"$v\"",
	"history \"$v\"", "dirs +$v", "pushd +$v", "pushd \"$v\"", "cd \"$v\"", "caller \"$v\"", "fc -l \"$v\"", "bind \"$v\"", "help \"$v\"", "hash \"$v\"", "type \"$v\"", "command -v \"$v\"", "set -o \"$v\"", "shopt \"$v\"", "enable \"$v\"", "jobs \"$v\"", "disown \"$v\"", "fg \"$v\"",
	"trap \"$v\" EXIT", "trap - \"$v\"", "eval \"$v\"", "eval $v", "compgen -W \"$v\"", "compgen -C \"$v\"", "compgen -F \"$v\"", "compgen -A \"$v\"", "compgen -G \"$v\"", "complete -W \"$v\" x", "times \"$v\"", "suspend \"$v\"", "logout \"$v\"",
	"echo $v", "echo \"$v\"", "echo {1..$v}", "echo {$v,x}", "seq \"$v\"", "expr \"$v\" + 1", "head -n \"$v\" f", "numfmt \"$v\"", "date -d \"$v\"", "grep \"$v\" f", "echo ${v^^}", "echo ${v#a}", "echo ${#v}", "echo ${v:-x}", "echo ${v:+x}", "echo ${v:?x}", "tr a \"$v\" <f", "basename \"$v\"",
	"set -- \"$v\"", "set -x; PS4=$v; :", "PS4=$v; set -x; :", "PROMPT_COMMAND=$v; :", "BASH_ENV=$v bash -c :", "ENV=$v sh -c :", "ENV=$v sh -ic :",
	"declare -A m; echo ${m[$v]}", "declare -A m; m[$v]=1", "declare -A m; ((m[$v]++))", "declare -A m; [[ -v m[$v] ]]", "declare -A m; unset \"m[$v]\"", "declare -A m; m=([$v]=1)", "declare -A m; echo $((m[$v]))", "declare -A m; m[$v]=1; unset m; echo ${m[$v]}",
	"declare -A m; read \"m[$v]\" <<<1", "declare -A m; printf -v \"m[$v]\" x", "declare -A m; [ -v \"m[$v]\" ]", "declare -A m; let \"m[$v]=1\"", "(declare -A m); m[$v]=1", "f() { declare -A m; }; f; m[$v]=1", "m=(); declare -A m; m[$v]=1", "echo ${m[$v]}; declare -A m",
	"false && declare -A m; m[$v]=1", "declare -A m | cat; m[$v]=1", "m=1 declare -A m; m[$v]=1", "declare -A m & m[$v]=1", "declare -Ai m; m[x]=v",
	"v=$v; echo $((v))", "w=v; echo $((w))", "w=v; echo ${a[w]}", "w=v; echo ${!w}", "w=v; [[ w -eq 0 ]]", "w=\"a[v]\"; ((w))", "w=a[v]; echo ${!w}", "w='a[$v]'; echo ${!w}", "w='$v'; echo \"${w@P}\"", "w='$v'; eval \"x=$w\"; ((x))",
	"SECONDS=$v", "RANDOM=$v", "LINENO=$v", "OPTIND=$v", "OPTERR=$v", "HISTCMD=$v", "COLUMNS=$v", "LINES=$v", "TMOUT=$v", "HISTSIZE=$v", "FUNCNEST=$v", "BASH_COMPAT=$v", "SRANDOM=$v", "BASHPID=$v", "EPOCHSECONDS=$v", "BASH_ARGV0=$v", "TZ=$v date", "LANG=$v", "LC_ALL=$v :", "CI=$v", "TERM=$v",
	"COLUMNS=$v; ((COLUMNS))", "LINENO=$v; ((LINENO))", "SECONDS=$v; ((SECONDS))", "RANDOM=$v; ((RANDOM))", "GROUPS=$v; ((GROUPS))", "DIRSTACK[v]=1", "DIRSTACK[0]=$v", "BASH_CMDS[x]=$v", "BASH_ALIASES[x]=$v",
	"((_))", ": \"$v\"; ((_))", ": \"$v\"; echo $((_))", ": \"$v\"; echo ${!_}", "((BASH_COMMAND))", "echo $((REPLY))", "[[ $v =~ .* ]]; ((BASH_REMATCH))", "[[ $v =~ .* ]]; echo $((${BASH_REMATCH[0]}))", "read -r <data; ((REPLY))", "mapfile -t <data; ((MAPFILE))", "mapfile -t <data; ((MAPFILE[0]))",
	"bash -c \"(($v))\"", "bash -c \"echo \\$(($v))\"", "sh -c \"echo \\$(($v))\"", "export v; bash -c \"((v))\"", "bash -c \"((\\$1))\" x \"$v\"", "bash -c \"((\\$0))\" \"$v\"", "env x=\"$v\" bash -c \"((x))\"", "x=\"$v\" bash -c \"((x))\"", "bash <<<\"((v))\"", "export v; bash <<<\"((v))\"", "bash -c \"$v\"", "bash -v <<<\"$v\"",
	"f() { ((v)); }; f", "f() { ((n)); }; n=$v; f", "f() { (( $1 )); }; f \"$v\"", "f() { (( $# )); }; f \"$v\"", "f() { echo ${!1}; }; f v", "f() { echo ${!1}; }; f \"$v\"",
}

// wrappings put a form into another place of a script.
var wrappings = []string{
	"FORM", "( FORM )", "{ FORM; }", "if FORM; then :; fi", "if true; then FORM; fi", "while FORM; do break; done", "for i in 1; do FORM; done", "true && FORM", "! FORM", "FORM | cat", "true | FORM", "time FORM",
	"f() { FORM; }; f", "echo \"$(FORM)\"", "echo `FORM`", "cat <(FORM)", "eval \"FORM\"", "bash -c \"FORM\"", "trap \"FORM\" EXIT", "case x in x) FORM;; esac", "x=$(FORM)", "cat <<E\n$(FORM)\nE", "FORM &\nwait", "coproc { FORM; }; wait",
	"[[ x == $(FORM) ]]", "((1+$(FORM)))", "echo ${x:-$(FORM)}", "a=($(FORM))", "declare x=$(FORM)", "select i in 1; do FORM; break; done <<<1",
}

// evaluated are a few forms of each sort that do evaluate their payload.
var evaluated = []string{
	"((a[$(>marker)]))", "echo $((a[$(>marker)]))", "echo ${a[$(>marker)]}", "a[$(>marker)]=1", "[[ -v 'a[$(>marker)]' ]]", "[[ 'a[$(>marker)]' -eq 0 ]]", "test -v 'a[$(>marker)]'", "[ -v 'a[$(>marker)]' ]",
	"let 'a[$(>marker)]'", "unset 'a[$(>marker)]'", "read 'a[$(>marker)]' <<<1", "printf -v 'a[$(>marker)]' x", "printf '-va[$(>marker)]' x", "mapfile 'a[$(>marker)]' <f", "declare 'a[$(>marker)]=1'", "declare -a 'a=($(>marker))'", "declare -a a='($(>marker))'",
	"declare -n n='a[$(>marker)]'; echo $n", "declare -i n='a[$(>marker)]'", "export 'a[$(>marker)]=1'", "readonly 'a[$(>marker)]=1'", "typeset 'a[$(>marker)]=1'", "getopts a 'a[$(>marker)]' -a", "wait -p 'a[$(>marker)]' 1", "compgen -W '$(>marker)'", "compgen -C '>marker'",
	"mapfile -C '>marker;' -c 1 x <f", "s=x; echo ${s:a[$(>marker)]}", "echo ${@:a[$(>marker)]}", "for ((i=a[$(>marker)];0;)); do :; done", "v='a[$(>marker)]'; echo ${!v}", "v='$(>marker)'; echo ${v@P}", "coproc 'a[$(>marker)]' { :; }", "exec {a[$(>marker)]}>f",
	"o='-delete'; >marker; find . $o", "x=5; x='a[$(>marker)]'; ((x))", "v='x -o marker'; sort $v f", "v=-omarker; sort $v f", "v='f -fprint marker'; find $v", "v=--output=marker; git log $v", "v=--output=marker; git diff --no-index $v f data",
	"echo f | xargs -I{} touch marker", "sort * ", "v='*'; sort $v",
}

// everyForm is the variable that makes the test try every combination, which
// takes minutes. Otherwise it takes a part of each sort.
const everyForm = "KEEN_EVERY_FORM"

// hiddenForms combines carriers, uses, payloads and wrappings. Those in always
// are run even when the classifier asks about them, which shows that they are
// what they should be.
func hiddenForms() (forms, always []string) {
	every := os.Getenv(everyForm) != ""
	for i, carrier := range carriers {
		for j, use := range uses {
			if every || (i+3*j)%29 == 0 {
				forms = append(forms, hide(carrier, use, payloads[(i+j)%len(payloads)]))
			}
		}
		for j, p := range payloads {
			if every || (i+j)%len(payloads) == 0 {
				always = append(always, hide(carrier, "((v))", p))
			}
		}
	}
	for i, use := range uses {
		for j, p := range payloads {
			if every || (i+j)%(2*len(payloads)) == 0 {
				always = append(always, "v='"+p+"'; "+use)
			}
			if every || (i+j)%(2*len(payloads)) == 1 {
				always = append(always, strings.ReplaceAll(strings.ReplaceAll(use, "$v", "'"+p+"'"), "(v", "("+p))
			}
		}
	}
	for i, w := range wrappings {
		for j, e := range evaluated {
			if !every && (i+j)%9 != 0 {
				continue
			}
			if strings.Contains(w, `"FORM"`) {
				e = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(e)
			}
			always = append(always, strings.ReplaceAll(w, "FORM", e))
		}
	}
	return forms, always
}

// hide fills a carrier.
func hide(carrier, use, payload string) string {
	if strings.Contains(carrier, "'BODY'") {
		use = strings.ReplaceAll(use, "'", `'\''`)
	}
	return strings.ReplaceAll(strings.ReplaceAll(carrier, "PAYLOAD", payload), "BODY", use)
}

// runner runs commands in a real bash, each in a directory of its own.
type runner struct {
	bash, base string
}

func newRunner(t *testing.T) runner {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("SKIPPED: bash is not installed, so nothing can be run against it")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return runner{bash: bash, base: base}
}

// fresh makes a working directory with a few files in it.
func (r runner) fresh(t *testing.T, name, data string) string {
	t.Helper()
	dir := filepath.Join(r.base, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"data": data + "\n", "f": "text\n", "code.sh": ">marker\n", "-omarker": "x\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// marks reports whether a command makes the marker.
func (r runner) marks(t *testing.T, dir, command string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, r.bash, "-c", command)
	c.Dir, c.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C"}
	c.WaitDelay = time.Second
	_ = c.Run() // Most forms are errors in one way or another.
	_, err := os.Stat(filepath.Join(dir, marker))
	_ = os.Remove(filepath.Join(dir, marker))
	return err == nil
}

func TestCodeHiddenInNamesAndValuesNeverPassesUnasked(t *testing.T) {
	r := newRunner(t)
	forms, always := hiddenForms()
	type job struct {
		command string
		always  bool
	}
	jobs := make(chan job)
	var mu sync.Mutex
	tried, ran, marked, passed := 0, 0, 0, 0
	var wg sync.WaitGroup
	for worker := range 4 {
		dirs := make([]string, len(payloads))
		guards := make([]*filesystem.Guard, len(payloads))
		for i, p := range payloads {
			dirs[i] = r.fresh(t, fmt.Sprintf("w%d-%d", worker, i), p)
			g, err := filesystem.NewGuard(dirs[i], filesystem.Options{Home: r.base})
			if err != nil {
				t.Fatal(err)
			}
			guards[i] = g
		}
		wg.Go(func() {
			for j := range jobs {
				at := 0
				for i, p := range payloads {
					if strings.Contains(j.command, p) {
						at = i
					}
				}
				got := permission.ClassifyCommand(j.command, guards[at])
				passes := got.Verdict == permission.VerdictAllow
				run := passes || j.always
				makes := run && r.marks(t, dirs[at], j.command)
				mu.Lock()
				tried++
				for counter, is := range map[*int]bool{&ran: run, &marked: makes, &passed: passes} {
					if is {
						*counter++
					}
				}
				mu.Unlock()
				if makes && passes {
					t.Errorf("%q runs unasked and makes the marker", j.command)
				}
			}
		})
	}
	for _, f := range forms {
		jobs <- job{command: f}
	}
	for _, f := range always {
		jobs <- job{command: f, always: true}
	}
	close(jobs)
	wg.Wait()
	t.Logf("%d forms tried, %d run in bash, %d of these made the marker, %d pass without a question", tried, ran, marked, passed)
	if marked < 150 || passed < 50 {
		t.Errorf("%d forms made the marker and %d pass: the forms are not what they should be", marked, passed)
	}
}
