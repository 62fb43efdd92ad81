// Package repl is what a user sees of Keen: the interactive program and the
// headless run. Both follow the events of a turn with the same two types:
// [Turn] keeps the application state right and says what has to be stored, and
// [StreamHandler] folds the events into what is visible.
//
// [Run] runs the interactive program, [New] makes its [Model] for a test.
// Everything it depends on is in [Options]. The model belongs to the goroutine
// of Bubble Tea and does no I/O: commands do, and answer with messages. The
// files are cut by concern: stream_msgs.go reads turns, turn_end.go ends them,
// compaction_state.go follows both kinds of compaction, handlers.go takes in
// keys, card.go holds what waits for the user and focus.go says who has the
// keys, transcript.go and live.go decide what is in the picture, view.go draws
// it.
//
// [HeadlessRun] is one turn without a screen.
//
// How things look is the business of the render package, how they are edited
// and chosen that of widgets. Neither turns nor tools are run here: the llm and
// tools packages do that.
//
// Tests play a client's events to a model in a synctest bubble (harness_test.go)
// or run the program on an emulated terminal (program_test.go).
package repl
