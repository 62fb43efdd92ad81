package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// parse reads a configuration file. Unlike package json alone it refuses what
// it does not know, says where that stands, and takes names exactly: a setting
// that is misspelt and ignored would be noticed far too late. An empty file
// holds no settings.
func parse(text []byte) (File, error) {
	var f File
	if len(bytes.TrimSpace(text)) == 0 {
		return f, nil
	}
	var anything any
	if err := json.Unmarshal(text, &anything); err != nil {
		return f, syntaxError(text, err)
	}
	c := checker{text: text, decoder: json.NewDecoder(bytes.NewReader(text))}
	c.decoder.UseNumber()
	if err := c.value("", reflect.TypeFor[File]()); err != nil {
		return f, err
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return f, err
	}
	return f, nil
}

// syntaxError adds the line to an error of package json.
func syntaxError(text []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	return fmt.Errorf("line %d: this is no JSON: %w", lineAt(text, syntax.Offset), err)
}

// lineAt returns the line in which a byte stands, counted from 1.
func lineAt(text []byte, offset int64) int {
	end := min(max(offset, 0), int64(len(text)))
	return 1 + bytes.Count(text[:end], []byte("\n"))
}

// checker compares a document, which is known to be JSON, with the types it
// will be read into.
type checker struct {
	text    []byte
	decoder *json.Decoder
}

// value checks the next value, which stands at path, against t.
func (c *checker) value(path string, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	token, err := c.decoder.Token()
	if err != nil {
		return err
	}
	if token == nil {
		return nil // null means the same as nothing.
	}
	if own, ok := reflect.New(t).Interface().(json.Unmarshaler); ok {
		return c.own(path, own, token)
	}
	switch delimiter, _ := token.(json.Delim); {
	case delimiter == '{' && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		return c.object(path, t)
	case delimiter == '[' && t.Kind() == reflect.Slice:
		return c.array(path, t)
	case !fits(token, t.Kind()):
		return c.fail("%s must be %s", path, kindName(t.Kind()))
	}
	return nil
}

// own checks a value whose type reads itself.
func (c *checker) own(path string, v json.Unmarshaler, token json.Token) error {
	text, err := json.Marshal(token)
	if err == nil {
		err = v.UnmarshalJSON(text)
	}
	if err != nil {
		return c.fail("%s %w", path, err)
	}
	return nil
}

func (c *checker) object(path string, t reflect.Type) error {
	seen := make(map[string]bool)
	for c.decoder.More() {
		token, err := c.decoder.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		at := strings.TrimPrefix(path+"."+name, ".")
		if seen[name] {
			return c.fail("%s stands there twice: keep one", at)
		}
		seen[name] = true
		inner, ok := member(t, name)
		if !ok {
			return c.fail("there is no setting %s%s", at, suggestion(name, slices.Sorted(maps.Keys(fieldsOf(t)))))
		}
		if err := c.value(at, inner); err != nil {
			return err
		}
	}
	_, err := c.decoder.Token()
	return err
}

func (c *checker) array(path string, t reflect.Type) error {
	for i := 0; c.decoder.More(); i++ {
		if err := c.value(fmt.Sprintf("%s[%d]", path, i), t.Elem()); err != nil {
			return err
		}
	}
	_, err := c.decoder.Token()
	return err
}

// fail makes an error about the token that was read last.
func (c *checker) fail(format string, args ...any) error {
	line := lineAt(c.text, c.decoder.InputOffset())
	return fmt.Errorf("line %d: %w", line, fmt.Errorf(format, args...))
}

// member returns the type of what stands under a name in a map or a struct.
func member(t reflect.Type, name string) (reflect.Type, bool) {
	if t.Kind() == reflect.Map {
		return t.Elem(), true
	}
	inner, ok := fieldsOf(t)[name]
	return inner, ok
}

// fieldsOf returns the types of a struct's fields by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := make(map[string]reflect.Type)
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		fields[name] = t.Field(i).Type
	}
	return fields
}

// fits reports whether a token can be read into a simple kind.
func fits(token json.Token, kind reflect.Kind) bool {
	switch v := token.(type) {
	case string:
		return kind == reflect.String
	case bool:
		return kind == reflect.Bool
	case json.Number:
		n, err := v.Int64()
		return kind == reflect.Int && err == nil && n >= 0
	}
	return false
}

func kindName(kind reflect.Kind) string {
	switch kind {
	case reflect.String:
		return "a string in quotes"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number that is not negative"
	case reflect.Slice:
		return "a list in brackets"
	}
	return "an object in braces"
}
