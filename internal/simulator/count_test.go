package simulator_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"keen/internal/simulator"
)

// samples are texts of the kinds that agents deal with.
func samples(t *testing.T) map[string]string {
	t.Helper()
	code, err := os.ReadFile("chat_rules.go")
	if err != nil {
		t.Fatal(err)
	}
	prose, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	var list, minified, noise strings.Builder
	for i := range 60 {
		fmt.Fprintf(&list, "  {\n    \"id\": %d,\n    \"path\": \"internal/llm/file_%d.go\",\n    \"modified\": \"2026-03-%02dT10:15:00Z\",\n    \"lines\": [%d, %d]\n  },\n", 1000+i, i, 1+i%28, i, i*7)
		fmt.Fprintf(&minified, "function t%d(e,n){if(!e||n<%d)return null;var r=e.map(function(t){return t*n});return r.length?r[0]:void 0}", i, i)
		sum := sha256.Sum256(fmt.Append(nil, i))
		noise.WriteString(base64.StdEncoding.EncodeToString(sum[:]))
	}
	return map[string]string{
		"prose": string(prose), "Go": string(code), "JSON": list.String(), "minified": minified.String(), "base64": noise.String(),
		"Chinese":  strings.Repeat("上下文窗口已满时，代理会自动压缩对话，并继续执行当前任务。", 20),
		"Japanese": strings.Repeat("コンテキストが一杯になると、エージェントは会話を要約して作業を続けます。", 20),
		"Russian":  strings.Repeat("Когда окно контекста заполнено, агент сжимает разговор и продолжает работу. ", 20),
	}
}

func TestTokensAreCountedAboutAsARealTokenizerDoes(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range samples(t) {
		want, err := codec.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		got := simulator.CountTokens(text)
		ratio := float64(got) / float64(want)
		t.Logf("%-9s %d bytes, %d tokens, counted %d (%.2f)", name, len(text), want, got, ratio)
		if ratio < 0.75 || ratio > 1.33 {
			t.Errorf("%s: counted %d tokens, a real tokenizer %d", name, got, want)
		}
	}
}

func TestCountsOfSmallTexts(t *testing.T) {
	for text, want := range map[string]int{
		"":                 0,
		"word":             1,
		"two words":        2,
		"camelCaseName":    3,
		"12345":            2,
		"a b  c":           4,
		"x\n\n\ty":         4,
		"trailing ":        2,
		"----------------": 1,
		`{"a":1}`:          5,
		"日本語を読む":           5,
		"слово":            1,
		"x.len":            2,
		"🎉":                2,
		"\xff\xfe":         2,
	} {
		if got := simulator.CountTokens(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestALongHistoryIsCountedOnce(t *testing.T) {
	var counted atomic.Int64
	count := func(s string) int {
		counted.Add(int64(len(s)))
		return simulator.CountTokens(s)
	}
	c := start(t, simulator.Options{Script: marathon(50, 1), Count: count})
	a := newAgent(c, "Read everything.")
	sent := 0
	for final := ""; final == ""; {
		var err error
		if final, err = a.step(); err != nil {
			t.Fatal(err)
		}
		last := a.messages[len(a.messages)-1]
		if final == "" {
			last["content"] = fmt.Sprintf("%d %s", len(a.messages), strings.Repeat("output ", 900))
		}
		sent += len(marshal(t, a.messages))
	}
	if got := counted.Load(); int(got) > sent/10 {
		t.Errorf("%d bytes counted of %d sent", got, sent)
	}
}

func TestTheCounterCanBeReplaced(t *testing.T) {
	c := start(t, simulator.Options{Count: func(s string) int { return len(s) }})
	c.post(with(chatBody(say("user", strings.Repeat("x", 1000))), "tools", nil))
	if got := c.last().Request.InputTokens; got < 1000 || got > 1020 {
		t.Errorf("%d tokens", got)
	}
}

func BenchmarkCountTokens(b *testing.B) {
	text, err := os.ReadFile("chat_rules.go")
	if err != nil {
		b.Fatal(err)
	}
	s := strings.Repeat(string(text), 20)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		simulator.CountTokens(s)
	}
}
