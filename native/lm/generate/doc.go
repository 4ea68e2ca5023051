// Package generate lets a language model write: a loop that feeds prompts in chunks, decodes several
// sequences at once, and gives each its tokens as they come.
//
//	engine, err := generate.New(ctx, session, generate.Of(model), generate.Options{Slots: 4, Context: 2048})
//	defer engine.Close(ctx)
//	for token, err := range engine.Generate(ctx, generate.Request{Tokens: prompt, MaxTokens: 100}) {
//		...
//	}
//
// An [Engine] has a fixed number of slots, each a sequence with keys and values of its own in the states of
// one program. A request takes a free slot; others wait. Two entries share the states: prefill takes a
// chunk of the prompt of one slot, decode the next token of all slots. Tokens are sampled in the graph
// and stay on the device, so that the next run starts before the host has read the last one.
//
// The file to read first is engine.go; graphs.go has the entries, schedule.go the loop, and stop.go
// what ends a text.
package generate
