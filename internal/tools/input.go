package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// decode reads the input of a call into T, a struct of string, number and flag
// fields with json tags. Fields without ",omitempty" are required. An error
// says what is wrong with the input and which fields there are, because the
// model is to call again.
func decode[T any](input json.RawMessage) (T, error) {
	var value T
	known, required := fieldsOf(reflect.TypeOf(value))
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(input, &raw); err != nil {
		return value, fmt.Errorf("the input is not a JSON object: %w", err)
	}
	var problems []string
	for name, text := range raw {
		switch {
		case !slices.Contains(known, name):
			problems = append(problems, fmt.Sprintf("there is no field %q", name))
		case string(text) == "null":
			delete(raw, name)
		}
	}
	for _, name := range required {
		if _, ok := raw[name]; !ok {
			problems = append(problems, fmt.Sprintf("the field %q is missing", name))
		}
	}
	target := reflect.ValueOf(&value).Elem()
	for i, name := range known {
		text, ok := raw[name]
		if !ok {
			continue
		}
		if err := json.Unmarshal(text, target.Field(i).Addr().Interface()); err != nil {
			problems = append(problems, fmt.Sprintf("the field %q must be %s", name, kindOf(target.Field(i))))
		}
	}
	if len(problems) > 0 {
		slices.Sort(problems)
		return value, fmt.Errorf("%s; the fields are %s", strings.Join(problems, ", "), strings.Join(known, ", "))
	}
	return value, nil
}

func fieldsOf(t reflect.Type) (known, required []string) {
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		known = append(known, name)
		if options == "" {
			required = append(required, name)
		}
	}
	return known, required
}

func kindOf(v reflect.Value) string {
	switch v.Interface().(type) {
	case number:
		return "a whole number"
	case flag:
		return "true or false"
	}
	return "a string"
}

// number is a whole number that a model may also have written as a string or
// with a fraction of zero.
type number int

// UnmarshalJSON implements [json.Unmarshaler].
func (n *number) UnmarshalJSON(text []byte) error {
	f, err := strconv.ParseFloat(strings.TrimSpace(strings.Trim(string(text), `"`)), 64)
	if err != nil {
		return err
	}
	if f != float64(int32(f)) {
		return errors.New("not a whole number, or too large")
	}
	*n = number(f)
	return nil
}

// flag is a truth value that a model may also have written as a string.
type flag bool

// UnmarshalJSON implements [json.Unmarshaler].
func (f *flag) UnmarshalJSON(text []byte) error {
	v, err := strconv.ParseBool(strings.ToLower(strings.Trim(string(text), `"`)))
	*f = flag(v)
	return err
}
