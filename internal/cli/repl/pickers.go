package repl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"keen/internal/cli/repl/render"
	"keen/internal/cli/repl/widgets"
)

// pickerRows is how high a picker is at most.
const pickerRows = 14

// pickerCard is a list that the user chooses from. chosen gets the value of the
// item; cancelled may be nil.
type pickerCard struct {
	m         *Model
	widget    *widgets.Picker
	chosen    func(value string) tea.Cmd
	cancelled func() tea.Cmd
	// awaited says that what is typed into the list is meant for it.
	awaited bool
}

// pick shows a list in place of the one that may be there.
func (m *Model) pick(p *pickerCard, why cause) {
	for _, c := range slices.Clone(m.cards) {
		if _, ok := c.(*pickerCard); ok {
			m.closeCard(c)
		}
	}
	p.m, p.awaited = m, m.focus.awaited(why)
	m.openCard(p, why)
}

func (m *Model) newPicker(title string, items []widgets.Item) *widgets.Picker {
	return widgets.NewPicker(m.theme, title, items)
}

// take implements card.
func (p *pickerCard) take(msg tea.Msg) (tea.Cmd, bool) {
	event := p.widget.Update(msg)
	if event.Kind != widgets.PickerChosen {
		return nil, event.Kind != widgets.PickerIgnored
	}
	p.awaited = true // Its search has served its purpose.
	p.m.closeCard(p)
	return p.chosen(event.Item.Value), true
}

// dismiss implements card.
func (p *pickerCard) dismiss() tea.Cmd {
	p.m.closeCard(p)
	if p.cancelled == nil {
		return nil
	}
	return p.cancelled()
}

// unsent implements card: what was typed into a list that came up by itself may
// have been the beginning of a prompt.
func (p *pickerCard) unsent() string {
	if p.awaited {
		return ""
	}
	return p.widget.Query()
}

// draw implements card.
func (p *pickerCard) draw(s cardScene) []string {
	return p.widget.View(s.width, min(pickerRows, s.height), render.CardHint{Keys: s.keys, Waiting: s.more})
}

// modelsMsg brings the models to choose from; arg is what the user typed.
type modelsMsg struct {
	models []ModelInfo
	arg    string
	err    error
	// efforts says that the user wants to choose an effort.
	efforts bool
	why     cause
}

func (m *Model) readModels(msg modelsMsg) tea.Cmd {
	if m.options.Models == nil {
		return m.notify("There is no list of models")
	}
	ctx, models := m.ctx, m.options.Models
	return func() tea.Msg {
		msg.models, msg.err = models(ctx)
		return msg
	}
}

func (m *Model) handleModels(msg modelsMsg) tea.Cmd {
	if msg.err != nil {
		m.fail(fmt.Errorf("list the models: %w", msg.err))
		return nil
	}
	m.models = msg.models
	switch {
	case msg.efforts:
		return m.chooseEffort(msg)
	case msg.arg != "":
		return m.useModel(msg.arg)
	case len(m.models) == 0:
		return m.startSetup(msg.why)
	}
	items := make([]widgets.Item, len(m.models))
	for i, model := range m.models {
		items[i] = widgets.Item{Text: model.Name, Detail: model.Detail, Value: model.Name}
	}
	widget := m.newPicker("Model", items)
	widget.Select(m.choice.Name)
	m.pick(&pickerCard{widget: widget, chosen: m.useModel}, msg.why)
	return nil
}

// useModel goes on with another model.
func (m *Model) useModel(name string) tea.Cmd {
	choice := ModelChoice{Name: name}
	if model, ok := m.modelInfo(name); ok && contains(model.Efforts, m.choice.Effort) {
		choice.Effort = m.choice.Effort
	}
	return m.openClient(choice, saveChoice)
}

func (m *Model) modelInfo(name string) (ModelInfo, bool) {
	for _, model := range m.models {
		if model.Name == name {
			return model, true
		}
	}
	return ModelInfo{}, false
}

// chooseEffort sets how hard the model thinks.
func (m *Model) chooseEffort(msg modelsMsg) tea.Cmd {
	arg := msg.arg
	model, _ := m.modelInfo(m.choice.Name)
	if len(model.Efforts) == 0 {
		return m.notify("This model has no thinking efforts to choose from")
	}
	use := func(effort string) tea.Cmd {
		return m.openClient(ModelChoice{Name: m.choice.Name, Effort: effort}, saveChoice)
	}
	switch {
	case arg != "" && contains(model.Efforts, arg):
		return use(arg)
	case arg != "":
		return m.notify("The efforts of this model: " + joinWords(model.Efforts))
	}
	items := []widgets.Item{{Text: "default", Detail: "what the model does by itself"}}
	for _, effort := range model.Efforts {
		items = append(items, widgets.Item{Text: effort, Value: effort})
	}
	widget := m.newPicker("Thinking effort of "+m.choice.Name, items)
	widget.Select(m.choice.Effort)
	m.pick(&pickerCard{widget: widget, chosen: use}, msg.why)
	return nil
}

// clientMsg brings a client, or says why there is none.
type clientMsg struct {
	client Client
	choice ModelChoice
	err    error
	// warning says that the choice could not be stored.
	warning error
	use     choiceUse
}

// choiceUse says what is done with a model that is chosen.
type choiceUse int

const (
	// keepChoice uses what the configuration says.
	keepChoice choiceUse = iota
	// saveChoice makes it the configuration.
	saveChoice
)

// openClient makes the client of a model. Prompts wait until it is there.
func (m *Model) openClient(choice ModelChoice, use choiceUse) tea.Cmd {
	m.opening++
	ctx, open, config := m.ctx, m.options.NewClient, m.options.Config
	return func() tea.Msg {
		msg := clientMsg{choice: choice, use: use}
		if msg.client, msg.err = open(ctx, choice); msg.err == nil && use == saveChoice {
			msg.warning = config.SetChoice(choice)
		}
		return msg
	}
}

func (m *Model) handleClient(msg clientMsg) tea.Cmd {
	m.opening--
	if msg.err != nil {
		m.fail(fmt.Errorf("use %s: %w", msg.choice.Name, msg.err))
		if m.client == nil {
			return m.startSetup(byItself)
		}
		return m.next()
	}
	m.client, m.choice = msg.client, msg.choice
	m.meter.budget = msg.client.Sizes().Budget
	if msg.warning != nil {
		m.warn("The choice of the model could not be stored: " + msg.warning.Error())
	}
	if msg.use == keepChoice {
		return m.next()
	}
	m.restyle()
	text := "Now using " + msg.choice.Name
	if msg.choice.Effort != "" {
		text += ", thinking " + msg.choice.Effort
	}
	return tea.Batch(m.notify(text), m.next())
}

// setupMsg brings the ways to come to a model.
type setupMsg struct {
	choices []SetupChoice
	why     cause
}

// startSetup helps the user to a model.
func (m *Model) startSetup(why cause) tea.Cmd {
	if m.options.Setup == nil {
		return m.notify("No model is set up: /login signs in, /model chooses one")
	}
	m.notice.text = "Looking for models…"
	ctx, setup := m.ctx, m.options.Setup
	return func() tea.Msg { return setupMsg{choices: setup(ctx), why: why} }
}

func (m *Model) handleSetup(msg setupMsg) tea.Cmd {
	choices := msg.choices
	m.notice.text = ""
	if len(choices) == 0 {
		return m.notify("Nothing was found to set up: /login signs in")
	}
	items := make([]widgets.Item, len(choices))
	for i, c := range choices {
		items[i] = widgets.Item{Text: c.Title, Detail: c.Detail, Value: strconv.Itoa(i)}
	}
	m.pick(&pickerCard{
		widget: m.newPicker("Where should the model come from?", items),
		chosen: func(value string) tea.Cmd {
			i, err := strconv.Atoi(value)
			if err != nil {
				return nil // The values are those above.
			}
			return m.applySetup(choices[i])
		},
		cancelled: func() tea.Cmd { return m.notify("No model is set up yet: /login or /model comes back here") },
	}, msg.why)
	return nil
}

func (m *Model) applySetup(c SetupChoice) tea.Cmd {
	return m.startJob(&job{title: c.Title}, func(ctx context.Context, say func(string)) jobResult {
		choice, err := c.Apply(ctx, say)
		if err != nil {
			return jobResult{err: err}
		}
		return jobResult{choice: &choice}
	})
}

// account signs the user in or out.
func (m *Model) account(title, arg string, run Account) tea.Cmd {
	return m.startJob(&job{title: title}, func(ctx context.Context, say func(string)) jobResult {
		return jobResult{err: run(ctx, arg, say)}
	})
}

func (m *Model) accountEnded(j *job) tea.Cmd {
	if len(j.output) > 0 {
		m.note(string(j.output))
	}
	switch {
	case errors.Is(j.result.err, context.Canceled):
		return m.notify(j.title + ": stopped")
	case j.result.err != nil:
		m.fail(fmt.Errorf("%s: %w", j.title, j.result.err))
	case j.result.choice != nil:
		return m.openClient(*j.result.choice, saveChoice)
	case m.client == nil:
		return tea.Batch(m.notify(j.title+": done"), m.readModels(modelsMsg{}))
	default:
		return m.notify(j.title + ": done")
	}
	return nil
}
