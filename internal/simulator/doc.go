// Package simulator holds scripted model servers: real HTTP on loopback, no
// model. They stand in for providers in the tests and in `keen demo`.
//
// A [Server] judges every request as a strict provider would: it counts the
// tokens with a counter of its own, enforces a hard context window, and refuses
// what breaks the rules of the wire. A request that passes goes to a [Script],
// which says what the model answers; the server streams that in the wire's
// format. A [Fault] makes an answer go wrong: rejections, stalls, dropped
// connections, errors inside the stream. [Server.Records] tells what arrived
// and what became of it.
//
// [NewMarathon] is a long job of many tool calls, [NewSequence] a fixed list of
// replies; [Split], [Inject] and [ScriptFunc] combine and make scripts. A wire
// format is one type that implements wire, in a file of its own, and a line in
// the table in wire.go.
//
// The package knows nothing of Keen's clients and uses no provider's client, so
// that it is an independent check of both; only the frames of Bedrock's streams
// are made by AWS's own encoder. It does not run tools and does not judge what
// the model is told, only whether a provider would take it.
//
// The server starts one goroutine, and net/http one for each connection;
// [Server.Close] ends them all and waits for them. Scripts run one at a time,
// in the order in which requests arrive.
package simulator
