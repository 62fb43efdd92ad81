package token

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"
)

// o200k counts tokens with the vocabulary of OpenAI's current models.
func o200k(t testing.TB) func(string) int {
	t.Helper()
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	return func(s string) int {
		n, err := codec.Count(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// kindOfText makes two different texts of one kind.
type kindOfText struct {
	name string
	text func(t testing.TB, part int) string
}

var kindsOfText = []kindOfText{
	{"go", goText},
	{"json", jsonText},
	{"minified js", minifiedText},
	{"cjk", cjkText},
	{"base64", base64Text},
	{"prose", proseText},
	{"log", logText},
	{"cyrillic", cyrillicText},
}

// goText is the source of the package above, half of its files for each part.
func goText(t testing.TB, part int) string {
	files, err := filepath.Glob("../*.go")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d source files: %v", len(files), err)
	}
	var b strings.Builder
	for i, name := range files {
		if i%2 != part {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()[:60000]
}

var someWords = strings.Fields("window context budget compact session stream adapter provider message history token estimate reserve output margin request retry error cancel result")

func jsonText(t testing.TB, part int) string {
	rng := rand.New(rand.NewSource(int64(part)))
	var rows []map[string]any
	for i := range 300 {
		rows = append(rows, map[string]any{
			"id": rng.Intn(1e6), "name": someWords[rng.Intn(len(someWords))] + " " + someWords[rng.Intn(len(someWords))],
			"enabled": i%3 == 0, "ratio": rng.Float64(), "tags": []string{someWords[i%len(someWords)], "v" + fmt.Sprint(i%7)},
			"path": fmt.Sprintf("/api/v%d/%s/%d", i%4, someWords[i%len(someWords)], i),
		})
	}
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func minifiedText(_ testing.TB, part int) string {
	rng := rand.New(rand.NewSource(int64(part)))
	letters := "abcdefghijklmnopqrstuvwxyz"
	v := func() string { return string(letters[rng.Intn(26)]) }
	w := func() string { return someWords[rng.Intn(len(someWords))] }
	var b strings.Builder
	for b.Len() < 60000 {
		fmt.Fprintf(&b, "function %s(%s,%s){var %s=%s.%s||{};if(!%s[%q])return null;for(var %s=0;%s<%s.length;%s++)%s.push(%s[%s]===void 0?%d:%s.%s(%s));return %s&&%s.%s(function(%s){return %s.%s!==%s})}",
			v(), v(), v(), v(), v(), w(), v(), w(), v(), v(), v(), v(), v(), v(), v(), rng.Intn(100), v(), w(), v(), v(), v(), w(), v(), v(), w(), v())
	}
	return b.String()
}

var cjkSentences = []string{
	"上下文窗口快满的时候，程序会在当前回合中整理对话，并且继续完成原来的任务。",
	"用户最后的要求必须原样保留，不能改写，也不能遗漏任何一个字。",
	"测试显示，经过两百步之后，没有一个请求超过限制，结果完全正确。",
	"会話が長くなると、エージェントはこれまでの内容を要約して作業を続けます。",
	"ファイルの一覧と実行したコマンドは、要約の後でも失われません。",
	"다음 요청이 한도를 넘기 전에 대화를 정리하고 작업을 계속한다.",
	"도구의 출력이 너무 크면 앞부분과 뒷부분만 남기고 줄인다.",
}

func cjkText(_ testing.TB, part int) string {
	rng := rand.New(rand.NewSource(int64(part)))
	var b strings.Builder
	for b.Len() < 60000 {
		b.WriteString(cjkSentences[rng.Intn(len(cjkSentences))])
		if rng.Intn(4) == 0 {
			b.WriteString("\n")
		}
	}
	return b.String()
}

func base64Text(_ testing.TB, part int) string {
	raw := make([]byte, 30000)
	rand.New(rand.NewSource(int64(part))).Read(raw)
	return base64.StdEncoding.EncodeToString(raw)
}

func proseText(t testing.TB, part int) string {
	names := []string{"../prompts/system.md", "../prompts/compaction.md"}
	text, err := os.ReadFile(names[part])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Repeat(string(text), 5)
}

func logText(_ testing.TB, part int) string {
	rng := rand.New(rand.NewSource(int64(part)))
	var b strings.Builder
	for b.Len() < 60000 {
		fmt.Fprintf(&b, "2026-11-%02dT%02d:%02d:%02d.%03dZ INFO %s.go:%d %s handled method=GET path=/api/v1/%s/%d status=%d duration=%dms\n",
			rng.Intn(28)+1, rng.Intn(24), rng.Intn(60), rng.Intn(60), rng.Intn(1000), someWords[rng.Intn(len(someWords))], rng.Intn(500),
			someWords[rng.Intn(len(someWords))], someWords[rng.Intn(len(someWords))], rng.Intn(1e5), 200+rng.Intn(300), rng.Intn(900))
	}
	return b.String()
}

func cyrillicText(_ testing.TB, part int) string {
	sentences := []string{
		"Когда окно заполняется, программа сжимает разговор и продолжает работу. ",
		"Последнее сообщение пользователя сохраняется дословно, без изменений. ",
		"Список прочитанных файлов и выполненных команд не теряется. ",
	}
	rng := rand.New(rand.NewSource(int64(part)))
	var b strings.Builder
	for b.Len() < 40000 {
		b.WriteString(sentences[rng.Intn(len(sentences))])
	}
	return b.String()
}

func TestEstimatesAddUp(t *testing.T) {
	for _, kind := range kindsOfText {
		text := kind.text(t, 0)
		whole := Estimate(text)
		for _, size := range []int{7, 100, 5000} {
			sum, parts := 0, 0
			for rest := text; rest != ""; parts++ {
				end := runeCeil(rest, min(size, len(rest)))
				sum += Estimate(rest[:end])
				rest = rest[end:]
			}
			if diff := sum - whole; diff < -3*parts || diff > 3*parts {
				t.Errorf("%s in %d parts of %d bytes: %d, the whole %d", kind.name, parts, size, sum, whole)
			}
		}
	}
}

func TestEstimateOfOddTexts(t *testing.T) {
	count := o200k(t)
	for name, text := range map[string]string{
		"one letter":    strings.Repeat("a", 10000),
		"spaces":        strings.Repeat(" ", 1<<20),
		"newlines":      strings.Repeat("\n", 1000),
		"emoji":         strings.Repeat("😀🎉👍🏽 ", 500),
		"combining":     strings.Repeat("e\u0301a\u0308", 500),
		"invalid UTF-8": strings.Repeat("\xff\xfe\x80", 500),
		"one mark":      ".",
		"arabic":        strings.Repeat("عندما تمتلئ النافذة يتم تلخيص المحادثة ", 50),
	} {
		got := Estimate(text)
		if got < 1 {
			t.Errorf("%s: %d", name, got)
		}
		if !utf8.ValidString(text) || len(text) > 100000 {
			continue
		}
		if want := count(text); got < want/3 || got > want*3+2 {
			t.Errorf("%s: %d, the vocabulary says %d", name, got, want)
		}
	}
	if got := Estimate(""); got != 0 {
		t.Errorf("nothing has %d tokens", got)
	}
}

func BenchmarkEstimate(b *testing.B) {
	for _, kind := range kindsOfText {
		b.Run(kind.name, func(b *testing.B) {
			text := kind.text(b, 0)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				Estimate(text)
			}
		})
	}
}
