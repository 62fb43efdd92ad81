package repl

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keen/internal/cli/repl/appstate"
	"keen/internal/llm"
	"keen/internal/session"
	"keen/internal/tools"
)

func TestWhatACallLeavesToRememberIsStoredAtItsEnd(t *testing.T) {
	turn := NewTurn(appstate.New("", []llm.Message{{Role: llm.RoleUser, Content: "do it"}}), "m")
	call := tools.Call{ID: "1", Name: "todo"}
	turn.Fold(llm.StreamEvent{Type: llm.StreamEventTypeStepStarted, Step: &llm.StepInfo{}})
	turn.Fold(llm.StreamEvent{Type: llm.StreamEventTypeToolStarted, Tool: &llm.ToolEvent{Call: call}})
	got := turn.Fold(llm.StreamEvent{Type: llm.StreamEventTypeToolEnded, Tool: &llm.ToolEvent{
		Call: call, Result: &tools.Result{Status: tools.StatusSuccess, State: []tools.State{{Name: "todo", Value: json.RawMessage(`[]`)}}},
	}})
	want := []session.Event{{Kind: session.KindState, Name: "todo", State: json.RawMessage(`[]`)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
