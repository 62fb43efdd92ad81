// Package widgets holds the interactive parts of the REPL: the [Editor] in
// which prompts are written, the [Completer] that pops up beside it, the
// [Picker] that lets the user choose from a long list, and the [Spinner].
//
// A widget is changed by its Update, which takes the messages of Bubble Tea and
// says at once what came of them, and drawn by its View. Widgets do no I/O: the
// program gives them their items and acts on their events. They belong to one
// goroutine. How things look is the business of the render package.
package widgets
