// Package serve answers the requests of OpenAI's API for texts with an engine of package generate:
// completions and chat completions, whole or as server-sent events, and the list of models; and for
// vectors of texts with an encoder of package native/models. Clients for that API work with it unchanged.
//
//	server := serve.New(engine, serve.Options{Name: "smollm2", Chat: template})
//	err := http.ListenAndServe("localhost:8080", server)
//
// As many requests are decoded at once as the engine has slots; others wait. A request ends when its client
// goes. Chats may have tools: calls are read from results in the forms of Hermes and Llama 3, and obey the schemas of
// their functions by a grammar, which tool_choice may require. Parameters of the API that this package does not support are refused, never ignored. The file to read first is
// server.go.
package serve
