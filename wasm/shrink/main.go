// Command shrink makes a WebAssembly module that was built by Go smaller to
// download, without changing what it does:
//
//	go run ./wasm/shrink module.wasm...
//
// It drops the tables of functions' names and source lines, which only
// tracebacks read, and with them the functions that print those, and others that
// the program has no use for, and maps of live pointers that the collector never
// asks for, and the names of types that nobody declared; leaves tables that are easily
// computed to a function that runs first, packs the data segments, and rewrites code so
// that what differs from call to call and from jump to jump takes less room in a
// compressed file.
// Go's linker has no flag for any of this.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
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

// shrink returns the module with less data and shorter code. A module that was
// shrunk before stays as it is.
func shrink(data []byte) ([]byte, error) {
	m, err := readModule(data)
	if err != nil {
		return nil, err
	}
	if m.section(startSection) != nil {
		return data, nil // Go's linker writes none
	}
	memory, err := readSegments(m.section(dataSection))
	if err != nil {
		return nil, err
	}
	functions, err := readTable(memory)
	if err != nil {
		return nil, err
	}
	bodies, err := readBodies(m.section(codeSection))
	if err != nil {
		return nil, err
	}
	if len(bodies) != len(functions.called) {
		return nil, errors.New("the table of functions does not match the code")
	}
	replaceRuntime(bodies, functions.called)
	dropped, err := dropUnused(m, bodies, functions.findAddresses(memory))
	if err != nil {
		return nil, err
	}
	functions.forget(dropped)
	if err := rewriteCode(m, bodies, functions); err != nil {
		return nil, err
	}
	if err := functions.write(); err != nil {
		return nil, err
	}
	tables, err := functions.leaveOut(memory)
	if err != nil {
		return nil, err
	}
	blankTypeNames(memory)
	// The build's number is among the custom sections: with it go build would
	// leave what was shrunk, perhaps by an older version of this, as it is.
	m = slices.DeleteFunc(m, func(s section) bool { return s.id == customSection })
	m.replace(dataSection, writeSegments(memory))
	m.replace(codeSection, writeBodies(bodies))
	if err := m.addStart(tables.startFunction()); err != nil {
		return nil, err
	}
	return m.write(), nil
}
