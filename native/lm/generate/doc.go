// Package generate generates text with a language model. A loop processes prompts in chunks,
// decodes several sequences at once, and streams tokens to each request.
//
//	engine, err := generate.New(ctx, session, generate.Of(model), generate.Options{Slots: 4, Context: 2048})
//	defer engine.Close(ctx)
//	for token, err := range engine.Generate(ctx, generate.Request{Tokens: prompt, MaxTokens: 100}) {
//		...
//	}
//
// An [Engine] has a fixed number of slots. Each holds the keys and values of one sequence in the
// states of a program. A request takes a free slot or waits for one. Two entries share the states:
// prefill processes a chunk of one slot's prompt, decode the next token of all slots. Tokens are
// sampled in the graph and stay on the device, so that the next run starts before the host has read
// the last one.
//
// The file to read first is engine.go. graphs.go has the entries, schedule.go the loop, and stop.go
// the stop conditions.
package generate
