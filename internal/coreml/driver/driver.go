//go:build cgo && (darwin || linux)

package driver

/*
#include "binding.h"

static int rlx_system_of(const rlx_coreml *b, rlx_system *system, rlx_why *why) { return b->system(system, why); }
*/
import "C"

import (
	"fmt"
	"runtime"
	"strings"
)

// Open opens Core ML. The error is of kind [native.ErrUnavailable] and names what is missing.
func Open() (Runtime, error) {
	b, err := binding()
	if err != nil {
		return nil, err
	}
	return system{b}, nil
}

// system is Core ML.
type system struct{ binding *C.rlx_coreml }

// System queries Core ML.
func (s system) System() (System, error) {
	var of C.rlx_system
	var why C.rlx_why
	if C.rlx_system_of(s.binding, &of, &why) != 0 {
		return System{}, unavailable(C.GoString(&why.text[0]))
	}
	var parts []string
	for _, p := range setOf(of.processors) {
		parts = append(parts, p.String())
	}
	if of.neural_cores > 0 {
		parts[len(parts)-1] += fmt.Sprintf(" of %d cores", of.neural_cores)
	}
	return System{Description: "Core ML, " + C.GoString(&of.version[0]) + ": " + strings.Join(parts, ", "), Software: standIn}, nil
}

// version identifies the system, also older ones for which System is an error.
func (s system) version() string {
	var of C.rlx_system
	var why C.rlx_why
	C.rlx_system_of(s.binding, &of, &why)
	return runtime.GOOS + " " + runtime.GOARCH + " " + C.GoString(&of.version[0])
}

// processors are the bits of sets of processors.
var processors = []C.int{C.RLX_CPU, C.RLX_GPU, C.RLX_NEURAL_ENGINE}

func setOf(set C.int) []Processor {
	var out []Processor
	for i, bit := range processors {
		if set&bit != 0 {
			out = append(out, CPU+Processor(i))
		}
	}
	return out
}
