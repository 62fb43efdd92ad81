package repl

import (
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/render"
	"keen/internal/cli/repl/widgets"
)

// commandTime says when a command may run.
type commandTime int

const (
	// whenIdle means that it has to wait until nothing goes on.
	whenIdle commandTime = iota
	always
)

// command is something that the user can do with a slash.
type command struct {
	name, args, help string
	when             commandTime
	run              func(m *Model, arg string) tea.Cmd
}

// commands are all commands, in the order of the help. It is a function
// because some of them show the list themselves.
func commands() []command {
	return []command{
		{name: "/help", help: "show this", when: always, run: (*Model).help},
		{name: "/model", args: "[name]", help: "choose the model", run: func(m *Model, arg string) tea.Cmd { return m.readModels(modelsMsg{arg: arg, why: m.focus.asked()}) }},
		{name: "/thinking", args: "[effort]", help: "choose how hard the model thinks", run: func(m *Model, arg string) tea.Cmd {
			return m.readModels(modelsMsg{arg: arg, efforts: true, why: m.focus.asked()})
		}},
		{name: "/show-thinking", args: "[on|short|off]", help: "show what the model thinks, or hide it", when: always, run: (*Model).showThinking},
		{name: "/compact", args: "[focus]", help: "replace the conversation by a summary of it", run: (*Model).compact},
		{name: "/context", help: "show what fills the context", when: always, run: (*Model).showContext},
		{name: "/usage", help: "show the tokens and the cost of this session", when: always, run: (*Model).showUsage},
		{name: "/clear", help: "begin a new session, the same as /new", run: (*Model).newSession},
		{name: "/new", help: "begin a new session; this one stays stored", run: (*Model).newSession},
		{name: "/sessions", args: "[fork|rename title]", help: "choose a stored session, copy this one or name it", run: (*Model).manageSessions},
		{name: "/resume", args: "[id]", help: "go on with the latest session, or the one with the id", run: func(m *Model, arg string) tea.Cmd {
			return m.listSessions(sessionsMsg{arg: arg, latest: arg == "", why: m.focus.asked()})
		}},
		{name: "/permissions", args: "[reset]", help: "show what is allowed, or forget what this session allowed", when: always, run: (*Model).showPermissions},
		{name: "/queue", args: "[clear]", help: "show the waiting prompts, or forget them", when: always, run: (*Model).showQueue},
		{name: "/copy", help: "copy the last answer", when: always, run: (*Model).copyAnswer},
		{name: "/export", args: "[file]", help: "write the session to a Markdown file", when: always, run: (*Model).export},
		{name: "/init", help: "let the agent write AGENTS.md for this project", run: func(m *Model, _ string) tea.Cmd { return m.submit(initPrompt) }},
		{name: "/login", args: "[provider]", help: "sign in or set up a model", run: (*Model).login},
		{name: "/logout", args: "[provider]", help: "sign out", run: (*Model).logout},
		{name: "/exit", help: "leave", when: always, run: func(m *Model, _ string) tea.Cmd { return m.quit() }},
	}
}

// initPrompt asks for project instructions.
const initPrompt = "Look around in this project and write a file AGENTS.md at its root for coding agents (or improve the one that is there): " +
	"how to build, test and lint, how the code is laid out, and the conventions that are not obvious from the code. " +
	"Keep it under 60 lines and state only what you verified."

// isCommand reports whether a prompt is meant as a command: a slash and a word
// without another slash, so that a path is none.
func isCommand(text string) bool {
	name, _, _ := strings.Cut(text, " ")
	return len(name) > 1 && name[0] == '/' && !strings.ContainsAny(name[1:], "/.\n")
}

// commands are the program's own commands and those that rooms add. One that is
// named like an earlier one is left out.
func (m *Model) commands() []command {
	list := commands()
	known := func(name string) bool {
		return slices.ContainsFunc(list, func(c command) bool { return c.name == name })
	}
	for _, c := range m.options.Commands {
		if known(c.Name) {
			continue
		}
		extra := command{name: c.Name, args: c.Args, help: c.Help, run: func(m *Model, arg string) tea.Cmd { return m.runExtra(c, arg) }}
		if c.WhileBusy {
			extra.when = always
		}
		list = append(list, extra)
	}
	for _, c := range m.promptCommands() {
		if !known(c.Name) {
			list = append(list, command{name: c.Name, args: c.Args, help: c.Help})
		}
	}
	return list
}

func (m *Model) takesArgument(name string) bool {
	list := m.commands()
	i := slices.IndexFunc(list, func(c command) bool { return c.name == name })
	return i >= 0 && list[i].args != ""
}

func (m *Model) commandItems() []widgets.Item {
	list := m.commands()
	items := make([]widgets.Item, len(list))
	for i, c := range list {
		items[i] = widgets.Item{Text: strings.TrimSpace(c.name + " " + c.args), Detail: c.help, Value: c.name}
	}
	return items
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// runCommand does what a command says.
func (m *Model) runCommand(text string) tea.Cmd {
	name, arg, _ := strings.Cut(text, " ")
	list := m.commands()
	i := slices.IndexFunc(list, func(c command) bool { return c.name == name })
	switch {
	case i < 0:
		m.editor.SetValue(text)
		return m.notify("There is no command " + name + "; /help shows all")
	case list[i].when == whenIdle && m.compaction.mode != compactionNone:
		m.editor.SetValue(text)
		return m.notify(name + " has to wait: a compaction is running, Esc cancels it")
	case list[i].when == whenIdle && m.busy():
		m.editor.SetValue(text)
		return m.notify(name + " has to wait: a turn is running, Esc interrupts it")
	}
	return list[i].run(m, strings.TrimSpace(arg))
}

func (m *Model) help(string) tea.Cmd {
	section := render.HelpSection{Title: "Commands"}
	for _, c := range m.commands() {
		section.Entries = append(section.Entries, render.HelpEntry{Name: strings.TrimSpace(c.name + " " + c.args), Text: c.help})
	}
	m.say(blockNote, render.HelpTable(m.theme, []render.HelpSection{section, {Title: "Keys", Entries: []render.HelpEntry{
		{Name: "Enter", Text: "send; while something runs, the prompt waits its turn"},
		{Name: "Shift+Enter", Text: "new line, also Alt+Enter, Ctrl+J, or a backslash before Enter"},
		{Name: "Tab", Text: "complete; without a completion, move to a question that waits, and back"},
		{Name: "Esc", Text: "stop the innermost thing: a compaction, a question, a command, the turn"},
		{Name: "Ctrl+C", Text: "interrupt the turn or clear the input; twice to leave"},
		{Name: "Up, Down", Text: "earlier prompts; Up on an empty line takes back a waiting prompt"},
		{Name: "Ctrl+R", Text: "search the earlier prompts"},
		{Name: "Ctrl+G", Text: "edit the prompt in $EDITOR"},
		{Name: "@name", Text: "complete the name of a file"},
		{Name: "!command", Text: "run a shell command; the model does not see it"},
		{Name: "Ctrl+Z", Text: "suspend Keen; fg comes back"},
	}}}, m.width))
	return nil
}

func (m *Model) showThinking(arg string) tea.Cmd {
	views := map[string]render.ReasoningView{"on": render.ReasoningShown, "short": render.ReasoningCollapsed, "off": render.ReasoningHidden}
	view, ok := views[arg]
	switch {
	case arg == "" && m.reasoning == render.ReasoningHidden:
		view = render.ReasoningShown
	case arg == "":
		view = render.ReasoningHidden
	case !ok:
		return m.notify("/show-thinking takes on, short or off")
	}
	m.reasoning = view
	config := m.options.Config
	text := map[render.ReasoningView]string{
		render.ReasoningShown: "Thinking is shown", render.ReasoningCollapsed: "Thinking is shown as one line", render.ReasoningHidden: "Thinking is hidden",
	}[view]
	return func() tea.Msg {
		if err := config.SetReasoning(view); err != nil {
			return outcomeMsg{warning: text + ", but that could not be stored: " + err.Error()}
		}
		return outcomeMsg{notification: text}
	}
}

func (m *Model) compact(hint string) tea.Cmd {
	switch {
	case m.client == nil:
		return m.startSetup(m.focus.asked())
	case len(m.state.Messages()) == 0:
		return m.notify("There is nothing to compact yet")
	}
	m.say(blockUser, render.UserMessage(m.theme, strings.TrimSpace("/compact "+hint), m.width))
	return m.startCompact(hint)
}

func (m *Model) showContext(string) tea.Cmd {
	if m.state == nil {
		return nil
	}
	m.say(blockNote, render.ContextBar(m.theme, m.contextUse(), m.width))
	return nil
}

func (m *Model) newSession(string) tea.Cmd { return m.freshSession("new session") }

func (m *Model) manageSessions(arg string) tea.Cmd {
	verb, rest, _ := strings.Cut(arg, " ")
	switch {
	case verb == "fork":
		return m.fork()
	case verb == "rename" && strings.TrimSpace(rest) != "":
		return m.rename(strings.TrimSpace(rest))
	case verb == "rename":
		return m.notify("/sessions rename needs the new name")
	}
	return m.listSessions(sessionsMsg{arg: arg, why: m.focus.asked()})
}

func (m *Model) showPermissions(arg string) tea.Cmd {
	if arg == "reset" {
		m.allowed = newSessionAllowed()
		return m.notify("What this session allowed is forgotten")
	}
	lines := []string{"Allowed for this session: " + orNothing(m.allowed.patterns)}
	if n := len(m.allowed.exact); n > 0 {
		lines[0] += ", and calls just like " + plural(n, "earlier one")
	}
	if m.options.ProjectAllowed != nil {
		lines = append(lines, "Allowed for this project: "+orNothing(m.options.ProjectAllowed()))
	}
	m.note(strings.Join(lines, "\n"))
	return nil
}

func orNothing(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return joinWords(list)
}

func (m *Model) showQueue(arg string) tea.Cmd {
	switch {
	case arg == "clear":
		return m.clearQueue()
	case len(m.queue) == 0:
		return m.notify("Queue is empty")
	}
	m.say(blockNote, render.QueueBand(m.theme, m.queue, -1, m.width))
	return nil
}

func (m *Model) copyAnswer(string) tea.Cmd {
	if m.lastAnswer == "" {
		return m.notify("There is no answer to copy yet")
	}
	return tea.Batch(tea.SetClipboard(m.lastAnswer), m.notify("Copied to clipboard"))
}

func (m *Model) login(arg string) tea.Cmd {
	switch {
	case m.options.Login != nil && (arg != "" || m.options.Setup == nil):
		return m.account("Sign in", arg, m.options.Login)
	case m.options.Setup != nil:
		return m.startSetup(m.focus.asked())
	}
	return m.notify("There is nothing to sign in to")
}

func (m *Model) logout(arg string) tea.Cmd {
	if m.options.Logout == nil {
		return m.notify("There is nothing to sign out of")
	}
	return m.account("Sign out", arg, func(ctx context.Context, arg string, show func(string)) error {
		return m.options.Logout(ctx, arg, show)
	})
}

func contains(list []string, s string) bool { return s != "" && slices.Contains(list, s) }

func joinWords(list []string) string { return strings.Join(list, ", ") }
