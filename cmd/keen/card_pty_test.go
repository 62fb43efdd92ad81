//go:build unix

package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"keen/internal/simulator"
)

// asking is a model that wants to make a file, at a moment that the test
// chooses, whenever the user says something that begins with "ask". Everything
// else it just answers.
type asking struct {
	mu    sync.Mutex
	gates []gate
	asked int
}

// next returns the gate at which the next question stands.
func (a *asking) next() gate {
	g := newGate()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gates = append(a.gates, g)
	return g
}

func (a *asking) Reply(r *simulator.Request) simulator.Reply {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := r.Messages[len(r.Messages)-1]
	switch {
	case len(last.Results) > 0:
		return simulator.Text(fmt.Sprintf("It was question %d.", a.asked))
	case strings.HasPrefix(last.Text, "ask"):
		reply := call("", "write_file", map[string]any{"path": fmt.Sprintf("made-%d.txt", a.asked), "content": "x\n"})
		reply.Fault = a.gates[a.asked].fault(1)
		a.asked++
		return reply
	}
	return simulator.Text("Heard: " + last.Text + ".")
}

// A prompt is typed key by key, and the card comes up between two of them: in
// the moment between, or long enough ago to be seen. The prompt is sent whole,
// and nobody is asked about the file by accident.
func TestACardCatchesNoKeyOfAPromptWheneverItComesUp(t *testing.T) {
	t.Parallel()
	const prompt = "go on"
	model := &asking{}
	server := serve(t, model)
	h := newHome(t)
	x := h.converse(server, usual)
	round := 0
	for _, seen := range []bool{false, true} {
		for at := range len(prompt) + 2 {
			g := model.next()
			x.keys(fmt.Sprintf("ask %d\r", round))
			g.wait(x)
			for i, key := range append(strings.Split(prompt, ""), enterKey, "") {
				if i == at {
					g.open()
					if seen {
						x.shows("Allow this?")
					}
				}
				x.keys(key)
			}
			x.shows("Queue", "1 waiting", prompt, "Allow this?")
			x.keys(escKey) // It is denied, and the prompt that waited is sent.
			heard := fmt.Sprintf("It was question %d.", round+1)
			x.until("the answer", func() bool { return inOrder(x.text(), heard, "Heard: "+prompt+".") })
			x.idle()
			if _, made := h.read(fmt.Sprintf("made-%d.txt", round)); made {
				t.Fatalf("the keys allowed something, card before key %d, seen: %v", at, seen)
			}
			round++
		}
	}
	x.leave()
}

func TestACardShowsWhoHasTheKeys(t *testing.T) {
	t.Parallel()
	model := &asking{}
	server := serve(t, model)
	h := newHome(t)
	x := h.converse(server, usual)
	first, second := model.next(), model.next()
	x.keys("ask\r")
	first.wait(x)
	x.keys("half a pro")
	first.open()
	x.shows("Allow this?", "tab to answer", "it waits while you type", "❯ half a pro")
	x.keys(ctrlR) // The input has the keys, so this is its search.
	x.shows("search:", "esc, then tab to answer")
	x.keys(escKey)
	x.hides("search:")
	x.keys("mpt" + tabKey)
	x.shows("❯ half a prompt", "tab to the input")
	x.keys(ctrlR + ctrlR) // Now the card has them.
	x.keys(downKey)
	x.shows("❯ Allow for this session", "enter confirm")
	if strings.Contains(x.visible(), "search:") {
		t.Errorf("the history is searched below the card:\n%s", x.visible())
	}
	x.keys("!") // No key of the card, so it goes where text goes.
	x.shows("❯ half a prompt!", "tab to answer")
	x.keys(tabKey)
	x.shows("enter confirm")
	x.keys(downKey + downKey + downKey + "use another name")
	x.shows("Deny: use another name", "❯ half a prompt!")
	x.keys(enterKey)
	x.until("the answer", func() bool { return strings.Contains(x.text(), "It was question 1.") })
	x.idle()
	x.shows("❯ half a prompt!")
	if results := settled(t, server)[1].Request.Results(); len(results) != 1 || !strings.Contains(results[0].Output, "use another name") {
		t.Errorf("the model was told %+v", results)
	}

	x.keys(ctrlC)
	x.keys("ask again\r")
	second.wait(x)
	second.open()
	x.shows("Allow this?")
	x.shows("enter confirm") // By itself, when nobody types.
	x.keys(enterKey)
	x.until("the answer", func() bool { return strings.Contains(x.text(), "It was question 2.") })
	x.idle()
	if _, made := h.read("made-1.txt"); !made {
		t.Error("what was allowed did not happen")
	}
	x.leave()
}
