// Package render turns what happened into lines for a terminal: pure string
// functions of a [Theme], some data and a width in cells. It reads no files,
// no environment and no clock, and keeps nothing but what a [Markdown] and its
// streams cache.
//
// Functions that may need several lines return one string a line, without line
// breaks. Each line closes the styles that it opens, so that a caller may show
// any part of them; none is wider than the given width, whatever the text and
// however narrow the width (a width below 1 counts as 1).
//
// Everything that comes from a model, a tool or a file is made harmless before
// it is drawn, see [Sanitize]; callers pass it on as it is. Right-to-left text
// is left in its logical order: terminals reorder it.
//
// Interaction lives in the widgets package, the program itself in repl.
package render
