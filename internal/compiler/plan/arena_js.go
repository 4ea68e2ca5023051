package plan

import "github.com/rlx-go/rlx/ir/loop"

// withArena is false in the browser, where every target has several arenas.
const withArena = false

func packTemps(*entryCompiler, []*liveRange) error { return nil }

func windowUsage([]loop.Access, []Binding) *FormatError { return nil }
