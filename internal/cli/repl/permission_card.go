package repl

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/render"
	"keen/internal/permission"
)

// approver asks the user about what the rules leave open. Tools call it from
// their goroutines and wait; the program answers in the order of the calls.
type approver struct {
	rules Rules
	asks  chan ask
}

func newApprover(r Rules) *approver { return &approver{rules: r, asks: make(chan ask)} }

// ask is a request that waits for the user.
type ask struct {
	request permission.Request
	// reply takes one decision without blocking.
	reply chan permission.Decision
	// done is closed when nobody waits any more.
	done <-chan struct{}
}

func (a ask) gone() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// Approve implements [permission.Approver].
func (a *approver) Approve(ctx context.Context, r permission.Request) (permission.Decision, error) {
	if err := ctx.Err(); err != nil {
		return permission.Decision{}, err
	}
	if a.rules != nil {
		switch verdict, reason := a.rules.Check(r); verdict {
		case permission.VerdictAllow:
			return permission.Decision{Allowed: true}, nil
		case permission.VerdictDeny:
			return permission.Decision{Message: permission.DeniedMessage(reason)}, nil
		}
	}
	q := ask{request: r, reply: make(chan permission.Decision, 1), done: ctx.Done()}
	select {
	case a.asks <- q:
	case <-ctx.Done():
		return permission.Decision{}, ctx.Err()
	}
	select {
	case d := <-q.reply:
		return d, nil
	case <-ctx.Done():
		return permission.Decision{}, ctx.Err()
	}
}

// askMsg brings a request.
type askMsg ask

// waitForAsk waits for the next request of a tool.
func (m *Model) waitForAsk() tea.Cmd {
	asks, done := m.approver.asks, m.ctx.Done()
	return func() tea.Msg {
		select {
		case q := <-asks:
			return askMsg(q)
		case <-done:
			return nil
		}
	}
}

// sessionAllowed is what the user allowed until the session ends.
type sessionAllowed struct {
	patterns []string
	// exact holds requests that no pattern describes.
	exact map[string]bool
}

func newSessionAllowed() sessionAllowed { return sessionAllowed{exact: make(map[string]bool)} }

func (s *sessionAllowed) allow(r permission.Request) {
	switch {
	case r.Outside:
		s.exact[exactly(r)] = true
	case r.Pattern != "":
		s.patterns = append(s.patterns, r.Pattern)
	case r.Command != "":
		s.exact[exactly(r)] = true
	default:
		s.patterns = append(s.patterns, r.Tool)
	}
}

func (s *sessionAllowed) has(r permission.Request) bool {
	return !r.Dangerous && (s.exact[exactly(r)] || permission.Matches(s.patterns, r))
}

func exactly(r permission.Request) string {
	return strings.Join(append([]string{r.Tool, r.Command}, r.Paths...), "\x00")
}

// handleAsk takes in a request and waits for the next one.
func (m *Model) handleAsk(q askMsg) tea.Cmd {
	m.asks = append(m.asks, ask(q))
	m.answerAllowed()
	return m.waitForAsk()
}

// answerAllowed answers what needs no answer of the user, and shows the first
// request that does.
func (m *Model) answerAllowed() {
	shown := len(m.asks) > 0 && m.card.Tool != ""
	m.asks = slices.DeleteFunc(m.asks, func(q ask) bool {
		if q.gone() {
			return true
		}
		if m.allowed.has(q.request) {
			q.reply <- permission.Decision{Allowed: true}
			return true
		}
		return false
	})
	if len(m.asks) == 0 {
		m.card = render.Permission{}
		return
	}
	if !shown {
		m.card = m.cardFor(m.asks[0].request)
	}
	m.card.Waiting = len(m.asks) - 1
}

func (m *Model) cardFor(r permission.Request) render.Permission {
	card := render.Permission{
		Tool: r.Tool, Action: r.Action, Command: r.Command, Paths: r.Paths, Reason: r.Reason,
		Diff: r.Diff, Dangerous: r.Dangerous,
	}
	if m.options.AllowProject != nil && !r.Outside {
		card.Pattern = r.Pattern
	}
	return card
}

// dropAsks forgets the requests of a turn that ends; nobody waits for them.
func (m *Model) dropAsks() {
	m.asks, m.card = nil, render.Permission{}
}

// typingPause is how long the keys of somebody who types a prompt go on to the
// editor after a card came up, so that the word being typed answers nothing.
const typingPause = 500 * time.Millisecond

// handleCardKey answers a request. It reports whether the key was for the card.
func (m *Model) handleCardKey(key tea.KeyPressMsg) (tea.Cmd, bool) {
	if len(m.asks) == 0 || m.now().Sub(m.lastType) < typingPause {
		return nil, false
	}
	switch key.Keystroke() {
	case "up", "shift+tab":
		m.card.Choice = m.card.Move(-1)
	case "down", "tab":
		m.card.Choice = m.card.Move(1)
	case "enter":
		return m.answer(m.card.Choice), true
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(m.card.Message)
		m.card.Message = m.card.Message[:len(m.card.Message)-n]
	default:
		if key.Text == "" {
			return nil, false
		}
		m.card.Choice = render.Deny
		m.card.Message += key.Text
	}
	return nil, true
}

// answer gives the user's answer to the first request and shows the next one.
func (m *Model) answer(choice render.PermissionChoice) tea.Cmd {
	q := m.asks[0]
	m.asks = m.asks[1:]
	message := strings.TrimSpace(m.card.Message)
	m.card = render.Permission{}
	var cmd tea.Cmd
	switch choice {
	case render.Deny:
		q.reply <- permission.Decision{Message: deniedByUser(message)}
		m.answerAllowed()
		return nil
	case render.AllowSession:
		m.allowed.allow(q.request)
	case render.AllowProject:
		m.allowed.allow(q.request)
		cmd = m.allowProject(q.request.Pattern)
	}
	q.reply <- permission.Decision{Allowed: true}
	m.answerAllowed()
	return cmd
}

func (m *Model) allowProject(pattern string) tea.Cmd {
	allow := m.options.AllowProject
	return func() tea.Msg {
		if err := allow(pattern); err != nil {
			return outcomeMsg{warning: "This is allowed for the session only; it could not be stored for the project: " + err.Error()}
		}
		return outcomeMsg{notification: "Allowed for this project: " + pattern}
	}
}

func deniedByUser(message string) string {
	if message == "" {
		return "the user denied this. Nothing was done. Do not try it another way; go on without it or ask what to do instead"
	}
	return "the user denied this. Nothing was done. The user says: " + message
}
