//go:build cgo && (darwin || linux)

package driver

/*
#include <stdlib.h>
#include "binding.h"

static int rlx_plan_of(const rlx_coreml *b, void *model, rlx_placement **out, rlx_why *why) { return b->plan(model, out, why); }
*/
import "C"

import (
	"errors"
	"unsafe"

	"github.com/rlx-go/rlx/native"
)

// Plan asks Core ML where the operations of the function would run.
func (m *model) Plan() ([]Placement, error) {
	if m.handle == nil {
		return nil, native.ErrClosed
	}
	var list *C.rlx_placement
	var why C.rlx_why
	n := C.rlx_plan_of(m.binding, m.handle, &list, &why)
	switch {
	case n == -2:
		return nil, unavailable(C.GoString(&why.text[0]))
	case n < 0:
		return nil, errors.New(C.GoString(&why.text[0]))
	}
	defer C.free(unsafe.Pointer(list))
	out := make([]Placement, n)
	for i := range unsafe.Slice(list, n) {
		p := &unsafe.Slice(list, n)[i]
		out[i] = Placement{Kind: C.GoString(&p.kind[0]), Name: C.GoString(&p.name[0]), Supported: setOf(p.supported), Cost: float64(p.cost)}
		if preferred := setOf(p.preferred); len(preferred) > 0 {
			out[i].Preferred = preferred[0]
		}
	}
	return out, nil
}
