package collective

import (
	"context"
	"sync"
)

// Joiner joins the group of a run by an engine whose package a program imports.
type Joiner struct {
	// Available returns nil if the engine's library can be loaded.
	Available func() error
	// Join returns the group of all processes of the run.
	Join func(ctx context.Context, o Options) (*Group, error)
}

var joiners sync.Map // by name

// Register makes an engine available by name, as package mpi does when it is imported. A later one replaces
// an earlier one of the same name.
func Register(name string, j Joiner) { joiners.Store(name, j) }

// Registered returns the engine that was registered under a name.
func Registered(name string) (j Joiner, ok bool) {
	found, ok := joiners.Load(name)
	if ok {
		j = found.(Joiner)
	}
	return j, ok
}
