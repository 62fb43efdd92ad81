package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"keen/internal/tools"
)

// BenchmarkCheckpoint measures the estimate and the decision at a checkpoint,
// the results of one step included. It must cost the same at every length.
func BenchmarkCheckpoint(b *testing.B) {
	for _, messages := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprintf("messages=%d", messages), func(b *testing.B) {
			a := &fakeAdapter{window: 1 << 40, output: 8192}
			a.script = func(fakeRequest) fakeReply { return say(goodSummary) }
			c := newFakeClient(b, a)
			history := []Message{user(task)}
			for i := range messages {
				history = append(history, Message{Role: RoleAssistant, Content: fmt.Sprintf("Step %d.", i), ToolActivities: []HistoricalToolActivity{
					{Tool: "read_file", Input: json.RawMessage(`{"path":"a.go"}`), HasRawOutput: true, RawOutput: strings.Repeat("x y z\n", 50)},
				}})
			}
			t := &turn{c: c, history: history, steps: 1, events: make(chan StreamEvent)}
			conv, err := t.start(history)
			if err != nil {
				b.Fatal(err)
			}
			t.conv = conv
			result := []tools.Result{{CallID: "call", Output: strings.Repeat("result\n", 100)}}
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				t.conv.appendResults(result)
				t.checkpoint(ctx)
			}
		})
	}
}
