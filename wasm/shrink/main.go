// Command shrink makes a WebAssembly module that was built by Go smaller to
// download, without changing what it does:
//
//	go run ./wasm/shrink module.wasm...
//
// It drops the tables of functions' names and source lines, which only
// tracebacks read, and packs the data segments. Go's linker has no flag for
// either.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: shrink module.wasm...")
		os.Exit(2)
	}
	for _, path := range os.Args[1:] {
		if err := shrinkFile(path); err != nil {
			fmt.Fprintln(os.Stderr, "shrink:", err)
			os.Exit(1)
		}
	}
}

func shrinkFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if data, err = shrink(data); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, data, 0o644)
}

// shrink returns the module with less in its data section and shorter code.
func shrink(data []byte) ([]byte, error) {
	m, err := readModule(data)
	if err != nil {
		return nil, err
	}
	memory, err := readSegments(m.section(dataSection))
	if err != nil {
		return nil, err
	}
	if err := dropNames(memory); err != nil {
		return nil, err
	}
	code, err := rewriteCode(m.section(codeSection))
	if err != nil {
		return nil, err
	}
	m.replace(dataSection, writeSegments(memory))
	m.replace(codeSection, code)
	return m.write(), nil
}
