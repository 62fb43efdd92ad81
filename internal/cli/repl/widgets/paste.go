package widgets

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Pastes with more lines or more characters than these are folded.
const (
	pasteLines = 10
	pasteChars = 1000
)

// imageRefusal is what the user reads after pasting an image.
const imageRefusal = "Images cannot be sent: Keen works with text only. Describe what the image shows, or paste its text."

// pastedText returns what a paste means: terminals send a carriage return for
// each line end when they send no other; anything else stays as it is.
func pastedText(content string) string {
	if strings.Contains(content, "\n") {
		return content
	}
	return strings.ReplaceAll(content, "\r", "\n")
}

// pasteLabel returns the label of a paste that is folded, empty for one that is
// not.
func pasteLabel(text string, number int) string {
	lines := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	chars := utf8.RuneCountInString(text)
	switch {
	case lines > pasteLines:
		return fmt.Sprintf("[Pasted text #%d, %d lines]", number, lines)
	case chars > pasteChars:
		return fmt.Sprintf("[Pasted text #%d, %d characters]", number, chars)
	}
	return ""
}

// isImage reports whether a paste is an image: its data, an escape sequence
// that carries it, or the name of its file alone, as terminals paste it when a
// file is dropped on them.
func isImage(content string) bool {
	text := strings.TrimSpace(content)
	for _, start := range []string{"\x89PNG", "\xff\xd8\xff", "GIF87a", "GIF89a", "data:image/", "\x1b]1337;File=", "]1337;File=", "\x1b_G", "\x1b]5522;"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	if strings.ContainsAny(text, "\r\n") {
		return false
	}
	text = strings.Trim(text, `'"`)
	switch strings.ToLower(filepath.Ext(text)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".heif":
		return isDroppedPath(text)
	}
	return false
}

// isDroppedPath reports whether text is a whole path as terminals paste it,
// not a sentence that ends with a name.
func isDroppedPath(text string) bool {
	if strings.HasPrefix(text, "file://") {
		return true
	}
	windows := len(text) > 2 && text[1] == ':' && (text[2] == '\\' || text[2] == '/')
	return windows || strings.HasPrefix(text, "/") || strings.HasPrefix(text, "~/")
}
