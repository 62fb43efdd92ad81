package simulator

import (
	"encoding/json"
	"net/http"
	"strings"
)

// isModelsRequest reports whether a request asks for the list of models.
func isModelsRequest(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models")
}

// anyModel is the name in the list of a server that serves every name.
const anyModel = "simulated"

// modelEntry is a model in the list. The window stands where vLLM has it.
type modelEntry struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int    `json:"created"`
	OwnedBy     string `json:"owned_by"`
	MaxModelLen int    `json:"max_model_len,omitempty"`
}

// serveModels sends the list of models.
func (s *Server) serveModels(w http.ResponseWriter) {
	m := modelEntry{ID: s.o.Model, Object: "model", Created: created, OwnedBy: "simulator"}
	if m.ID == "" {
		m.ID = anyModel
	}
	switch window := s.o.AdvertisedWindow; {
	case window > 0:
		m.MaxModelLen = window
	case window == 0:
		m.MaxModelLen = s.o.Window
	}
	body := mustJSON(map[string]any{"object": "list", "data": []modelEntry{m}})
	writeJSON(w, http.StatusOK, body)
}

// created is the time at which everything here was made, in Unix seconds.
const created = 1_760_000_000

// mustJSON encodes a value that this package made. Such a value always
// encodes, so an error is a mistake of the programmer.
func mustJSON(v any) string {
	encoded, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(encoded)
}
