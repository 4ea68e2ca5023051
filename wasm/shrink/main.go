// Command shrink makes a WebAssembly module that was built by Go smaller to
// download, without changing what it does:
//
//	go run ./wasm/shrink module.wasm...
//
// It makes these changes, for which Go's linker has no flags:
//
//   - it drops data that only tracebacks read (the names and source lines of functions), and the
//     functions that print them;
//   - it drops functions that the program cannot reach, maps of live pointers that the garbage
//     collector never reads, and the names of unnamed types;
//   - it computes some tables in a start function instead of storing them;
//   - it packs the data segments;
//   - functions push the return addresses that their callers pass, in place of each caller;
//   - it rewrites code so that calls and jumps have equal bytes, which compress better, and adds zeros,
//     which keep an encoder from taking the module for text.
//
// It is the last step of the build of rlx.wasm, sizes.wasm and onnx.wasm, after package wasm/overlay, which replaces
// sources, and the linker. Start reading at main.go, whose function shrink has the changes in their order, then
// module.go, the sections of a module, and code.go.
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

// shrink returns the module with less data and shorter code. A module that was shrunk before is
// returned unchanged.
func shrink(data []byte) ([]byte, error) {
	m, err := readModule(data)
	if err != nil {
		return nil, err
	}
	if m.section(startSection) != nil {
		return data, nil // Go's linker writes no start section
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
	tables, err := functions.omitComputed(memory)
	if err != nil {
		return nil, err
	}
	blankTypeNames(memory)
	// The build ID is in a custom section. With it, go build would keep the output of an older
	// version of this command as up to date.
	m = slices.DeleteFunc(m, func(s section) bool { return s.id == customSection })
	m.replace(dataSection, writeSegments(memory))
	m.replace(codeSection, writeBodies(bodies))
	if err := m.addStart(tables.startFunction()); err != nil {
		return nil, err
	}
	return append(m, padding()).write(), nil
}

// padding returns a custom section that keeps Brotli's encoder from taking the module for text. At quality 11 it
// chooses the contexts of literals by the part of the bytes that read as UTF-8 without zeros, three quarters at
// least for text. Modules have about that, and as text are 15 kB larger; the section packs to some bytes.
func padding() section {
	const name = "zeros"
	return section{customSection, append([]byte{byte(len(name))}, append([]byte(name), make([]byte, 256<<10)...)...)}
}
