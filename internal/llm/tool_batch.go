package llm

import (
	"context"
	"sync"

	"keen/internal/tools"
)

// runBatch runs the calls of an answer one after the other and adds all
// results, in call order, to native and canonical history. When the turn is
// interrupted, the calls that did not run get a result that says so: no call
// is ever left without one.
func (t *turn) runBatch(ctx context.Context, answer step) {
	results := make([]tools.Result, 0, len(answer.Calls))
	message := Message{Role: RoleAssistant, Content: answer.Text}
	for _, call := range answer.Calls {
		results = append(results, t.runCall(ctx, call))
	}
	t.addNews(results)
	for i, call := range answer.Calls {
		message.ToolActivities = append(message.ToolActivities, Activity(call, results[i], len(answer.Text)))
	}
	t.conv.appendResults(results)
	t.history = append(t.history, message)
}

// runCall runs one call and reports its beginning, its output and its end. The
// tool runs in a goroutine of its own, so that only the turn's goroutine sends
// events.
func (t *turn) runCall(ctx context.Context, call tools.Call) tools.Result {
	if ctx.Err() != nil {
		result := tools.CancelledResult(call)
		t.emit(StreamEvent{Type: StreamEventTypeToolEnded, Tool: &ToolEvent{Call: call, Result: &result}})
		return result
	}
	t.emit(StreamEvent{Type: StreamEventTypeToolStarted, Tool: &ToolEvent{Call: call}})
	progress := make(chan tools.Progress)
	ended := make(chan struct{})
	var result tools.Result
	var running sync.WaitGroup
	running.Go(func() {
		defer close(ended)
		result = t.registry.Run(ctx, call, func(p tools.Progress) {
			select {
			case progress <- p:
			case <-ended:
			}
		})
	})
	for open := true; open; {
		select {
		case p := <-progress:
			t.emit(StreamEvent{Type: StreamEventTypeToolOutput, Tool: &ToolEvent{Call: call, Output: p.Text}})
		case <-ended:
			open = false
		}
	}
	running.Wait()
	t.emit(StreamEvent{Type: StreamEventTypeToolEnded, Tool: &ToolEvent{Call: call, Result: &result}})
	return result
}
