package providers

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
)

// Model is what the catalogue says of one model of one provider.
type Model struct {
	// ID is its name on the wire, Name the one for people.
	ID, Name string
	// ContextWindow is its window in tokens.
	ContextWindow int
	// MaxOutputTokens is the most output it is safe to ask for, in tokens.
	MaxOutputTokens int
	// Reasons says that it can think before it answers.
	Reasons bool
	// Efforts are the thinking efforts it knows, least first; empty when
	// nothing is known about them.
	Efforts []string
	// PriceInput, PriceOutput and PriceCached are in US dollars for a million
	// tokens; 0 when unknown.
	PriceInput, PriceOutput, PriceCached float64
}

// Registry is the table of providers and their models. It is safe for use by
// several goroutines.
type Registry struct {
	providers []Provider
	// load parses the catalogue when it is needed first, which takes tens of
	// milliseconds.
	load func() map[string][]Model
}

// NewRegistry returns the registry. It costs nothing until a model is looked
// up.
func NewRegistry() *Registry {
	return &Registry{providers: presets(), load: sync.OnceValue(catalogue)}
}

// catalogue reads the embedded models by their provider in the catalogue.
func catalogue() map[string][]Model {
	lists := make(map[string][]Model)
	for _, p := range embedded.GetAll() {
		models := make([]Model, 0, len(p.Models))
		for _, m := range p.Models {
			models = append(models, catalogueModel(m))
		}
		lists[string(p.ID)] = models
	}
	return lists
}

func catalogueModel(m catwalk.Model) Model {
	return Model{
		ID: m.ID, Name: m.Name, ContextWindow: int(m.ContextWindow), MaxOutputTokens: int(m.DefaultMaxTokens),
		Reasons: m.CanReason, Efforts: m.ReasoningLevels,
		PriceInput: m.CostPer1MIn, PriceOutput: m.CostPer1MOut, PriceCached: m.CostPer1MOutCached,
	}
}

// All returns the providers in the order in which they are tried.
func (r *Registry) All() []Provider { return slices.Clone(r.providers) }

// Lookup returns the provider with an id.
func (r *Registry) Lookup(id string) (Provider, bool) {
	for _, p := range r.providers {
		if p.ID == id {
			return p, true
		}
	}
	return Provider{}, false
}

// ByOtherName returns the provider that people may mean by a name that is no
// id, such as googleai for "gemini".
func (r *Registry) ByOtherName(name string) (Provider, bool) {
	for _, p := range r.providers {
		if slices.Contains(p.otherNames, strings.ToLower(name)) {
			return p, true
		}
	}
	return Provider{}, false
}

// Models returns what is known about the models of a provider. It is empty for
// providers that are not in the catalogue.
func (r *Registry) Models(p Provider) []Model {
	var models []Model
	for _, list := range p.catalogues {
		for _, m := range r.load()[list] {
			m.Efforts = slices.Clone(m.Efforts)
			models = append(models, p.limit(m))
		}
	}
	return models
}

// Model returns what is known about a model of a provider. It never looks at
// other providers: the same name may stand for another window there. A name
// with a date is found under the name without it and the other way round, and
// a Bedrock model under each of its regions; of several the smallest limits
// count.
func (r *Registry) Model(p Provider, name string) (Model, bool) {
	models := r.Models(p)
	for _, m := range models {
		if m.ID == name {
			return m, true
		}
	}
	var found Model
	for _, m := range models {
		switch {
		case p.bareName(m.ID) != p.bareName(name):
		case found.ID == "":
			found = m
		default:
			found.ContextWindow = min(found.ContextWindow, m.ContextWindow)
			found.MaxOutputTokens = min(found.MaxOutputTokens, m.MaxOutputTokens)
		}
	}
	if found.ID == "" {
		return Model{}, false
	}
	found.ID = name
	return found, true
}

// limit cuts a model to what the provider serves of it.
func (p Provider) limit(m Model) Model {
	if p.Quirks.MaxWindow > 0 {
		m.ContextWindow = min(m.ContextWindow, p.Quirks.MaxWindow)
	}
	return m
}

var (
	datePattern   = regexp.MustCompile(`(-latest|-20\d\d-?\d\d-?\d\d)?(-v\d+(:\d+)?)?$`)
	regionPattern = regexp.MustCompile(`^(us|eu|apac|global|jp|au|ca|us-gov)\.`)
)

// bareName is a model's name without its date and region.
func (p Provider) bareName(name string) string {
	if p.Wire == WireBedrock {
		name = regionPattern.ReplaceAllString(name, "")
	}
	return datePattern.ReplaceAllString(name, "")
}

// RegionalModel returns the default model for an AWS region: the part in front
// of a Bedrock model says on which continent it runs.
func (p Provider) RegionalModel(region string) string {
	if p.Wire != WireBedrock || region == "" {
		return p.DefaultModel
	}
	continent, _, _ := strings.Cut(region, "-")
	if continent != "us" && continent != "eu" {
		continent = "global"
	}
	return regionPattern.ReplaceAllString(p.DefaultModel, continent+".")
}
