package repl

import (
	"context"
	"strings"
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

// permissionCard is the card of a request that waits for the user.
type permissionCard struct {
	m    *Model
	ask  ask
	view render.Permission
	// body is drawn once for a theme and a width, because it may be long; page
	// is how many of its lines were in sight last.
	body  []string
	theme *render.Theme
	width int
	page  int
}

// handleAsk takes in a request and waits for the next one.
func (m *Model) handleAsk(q askMsg) tea.Cmd {
	m.openCard(&permissionCard{m: m, ask: ask(q), view: m.permissionView(q.request)}, byItself)
	m.answerAllowed()
	return m.waitForAsk()
}

// permissionCards returns the requests that wait for the user.
func (m *Model) permissionCards() []*permissionCard {
	var found []*permissionCard
	for _, c := range m.cards {
		if p, ok := c.(*permissionCard); ok {
			found = append(found, p)
		}
	}
	return found
}

// answerAllowed answers what needs no answer of the user, and forgets what
// nobody waits for any more.
func (m *Model) answerAllowed() {
	for _, c := range m.permissionCards() {
		switch {
		case c.ask.gone():
			m.closeCard(c)
		case m.allowed.has(c.ask.request):
			c.ask.reply <- permission.Decision{Allowed: true}
			m.closeCard(c)
		}
	}
}

func (m *Model) permissionView(r permission.Request) render.Permission {
	view := render.Permission{
		Tool: r.Tool, Action: r.Action, Command: r.Command, Paths: r.Paths, Reason: r.Reason,
		Diff: r.Diff, Dangerous: r.Dangerous,
	}
	if m.options.AllowProject != nil && !r.Outside {
		view.Pattern = r.Pattern
	}
	return view
}

// dropAsks forgets the requests of a turn that ends; nobody waits for them.
func (m *Model) dropAsks() {
	for _, c := range m.permissionCards() {
		m.closeCard(c)
	}
}

// take implements card. Text is a message for the model only when the user has
// gone to the denial, which says so.
func (c *permissionCard) take(msg tea.Msg) (tea.Cmd, bool) {
	switch msg := msg.(type) {
	case tea.PasteMsg:
		return nil, c.say(msg.Content)
	case tea.KeyPressMsg:
		return c.key(msg)
	}
	return nil, false
}

func (c *permissionCard) key(key tea.KeyPressMsg) (tea.Cmd, bool) {
	switch key.Keystroke() {
	case "up":
		c.view.Choice = c.view.Move(-1)
	case "down":
		c.view.Choice = c.view.Move(1)
	case "pgup":
		c.scroll(-c.page)
	case "pgdown":
		c.scroll(c.page)
	case "enter":
		return c.answer(c.view.Choice), true
	case "backspace", "ctrl+h":
		_, n := utf8.DecodeLastRuneInString(c.view.Message)
		c.view.Message = c.view.Message[:len(c.view.Message)-n]
	default:
		return nil, c.say(key.Text)
	}
	return nil, true
}

// scroll moves what is in sight of the body by n lines.
func (c *permissionCard) scroll(n int) {
	c.view.Offset = max(min(c.view.Offset+n, len(c.body)-c.page), 0)
}

// say adds to the message, where there is one.
func (c *permissionCard) say(text string) bool {
	if text == "" || c.view.Choice != render.Deny {
		return false
	}
	c.view.Message += text
	return true
}

// dismiss implements card. What was typed is not sent: Esc takes it back.
func (c *permissionCard) dismiss() tea.Cmd {
	c.reply(permission.Decision{Message: deniedByUser("")})
	return nil
}

// unsent implements card.
func (c *permissionCard) unsent() string { return c.view.Message }

// draw implements card.
func (c *permissionCard) draw(s cardScene) []string {
	c.view.Keys, c.view.Waiting, c.view.Height = s.keys, s.more, s.height
	if c.theme != c.m.theme || c.width != s.width {
		c.theme, c.width = c.m.theme, s.width
		c.body = render.PermissionBody(c.theme, c.view, s.width)
	}
	var lines []string
	lines, c.page = render.PermissionCard(c.theme, c.view, c.body, s.width)
	return lines
}

// answer gives the user's answer.
func (c *permissionCard) answer(choice render.PermissionChoice) tea.Cmd {
	m, r := c.m, c.ask.request
	var cmd tea.Cmd
	switch choice {
	case render.Deny:
		message := strings.TrimSpace(c.view.Message)
		c.view.Message = ""
		c.reply(permission.Decision{Message: deniedByUser(message)})
		return nil
	case render.AllowSession:
		m.allowed.allow(r)
	case render.AllowProject:
		m.allowed.allow(r)
		cmd = m.allowProject(r.Pattern)
	}
	c.reply(permission.Decision{Allowed: true})
	return cmd
}

// reply ends the request and its card.
func (c *permissionCard) reply(d permission.Decision) {
	c.ask.reply <- d
	c.m.closeCard(c)
	c.m.answerAllowed()
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
