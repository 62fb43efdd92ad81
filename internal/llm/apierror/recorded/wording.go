package recorded

import _ "embed" // for the rows

//go:embed wordings.jsonl
var wordings string

// Wording is what a server says, without the envelope that each wire puts it
// into. Some were recorded, some made up in the same way.
type Wording struct {
	ID string `json:"id"`
	// Who says so, or what a look-alike is about.
	Who    string `json:"who"`
	Status int    `json:"status"`
	// Message, Code and Param are the fields of the error.
	Message string `json:"message"`
	Code    string `json:"code"`
	Param   string `json:"param"`
	// Body is the whole body, where the envelope is part of the wording.
	Body string `json:"body"`
	// Headers come with it.
	Headers map[string]string `json:"headers"`

	// Kind is the kind of package apierror that it is.
	Kind string `json:"kind"`
	// Used and Limit are the tokens that it states, 0 where it states none.
	Used  int `json:"used"`
	Limit int `json:"limit"`
	// Wait is how long it asks to wait, a duration, empty where it doesn't.
	Wait string `json:"wait"`
	// Ends says that a turn ends with it although it is about a rate.
	Ends bool `json:"ends"`
}

// Wordings returns all of them.
func Wordings() ([]Wording, error) { return decode[Wording](wordings) }
