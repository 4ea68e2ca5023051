package native

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rlx-go/rlx/ir"
)

var registry struct {
	sync.Mutex
	backends []Backend
}

// Register adds a backend. Packages that bring one call it when they are
// imported; whether the device is there is left to [Backend.Probe]. The error
// is of kind [ir.ErrName] for a name that is taken or empty.
func Register(b Backend) error {
	registry.Lock()
	defer registry.Unlock()
	name := b.Name()
	taken := slices.ContainsFunc(registry.backends, func(r Backend) bool { return r.Name() == name })
	if name == "" || taken {
		return ir.Errorf(ir.ErrName, "backend %q is unnamed or registered twice", name)
	}
	registry.backends = append(registry.backends, b)
	return nil
}

// Backends returns the registered backends, sorted by name.
func Backends() []Backend {
	registry.Lock()
	defer registry.Unlock()
	return slices.SortedFunc(slices.Values(registry.backends), func(a, b Backend) int {
		return strings.Compare(a.Name(), b.Name())
	})
}

// Numbered is a backend for which a machine may have several devices. The
// backend itself is the first of them; "cuda:1" is the second of "cuda".
type Numbered interface {
	Backend
	// Device returns the backend of the device with a number from 0 on, whose
	// Probe fails where there is none.
	Device(number int) Backend
}

// Lookup returns the backend of that name, which may be that of a [Numbered]
// backend with a colon and a number. The error is of kind [ir.ErrName] and lists
// those there are.
func Lookup(name string) (Backend, error) {
	base, digits, _ := strings.Cut(name, ":")
	number, notANumber := strconv.ParseUint(digits, 10, 16)
	var names []string
	for _, b := range Backends() {
		if b.Name() == name {
			return b, nil
		}
		if n, ok := b.(Numbered); ok && b.Name() == base && notANumber == nil {
			return n.Device(int(number)), nil
		}
		names = append(names, b.Name())
	}
	return nil, &Error{Backend: name, Kind: ir.ErrName, Err: fmt.Errorf("no such backend: this program has %s; what else there is comes with an import, see package rlx", strings.Join(names, ", "))}
}
