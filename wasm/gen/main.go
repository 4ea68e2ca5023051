// Command gen writes the TypeScript methods of the ops from their definitions, or a reference of
// the ops in JSON, from which the documentation is built:
//
//	go run ./wasm/gen js/src/graph/ops.gen.ts
//	go run ./wasm/gen build/ops.json
//
// Its input are the definitions and samples that are linked in. Start reading at main.go; typescript.go writes the
// methods, attributes.go their options, reference.go the reference.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen file.ts|file.json")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// write writes the file that the ending of its name asks for.
func write(path string) error {
	content := []byte(generate())
	if filepath.Ext(path) == ".json" {
		var err error
		if content, err = reference(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
