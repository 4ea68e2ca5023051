package loop

import "github.com/rlx-go/rlx/ir/scalar"

// What a multiprocessor has, on NVIDIA's GPUs since Ampere's and Hopper's servers (CUDA
// C++ Programming Guide, table of technical specifications).
const (
	maxThreads    = 2048
	maxGroups     = 32
	fileRegisters = 64 << 10
	sharedMemory  = 228 << 10
	groupShared   = 1 << 10 // that the system takes of each workgroup
	// plainRegisters are those of addresses and of expressions under way.
	plainRegisters = 16
)

// Registers estimates how many registers of 32 bits a thread of the kernel needs: as many
// as variables are alive at once where most are, and some for what is computed. A compiler
// may keep fewer, by computing what it needs again, or more, by loading ahead.
func (k *Kernel) Registers() int {
	l := lifetimes{from: map[string]int{}, to: map[string]int{}}
	l.block(k.Body)
	alive, most := make([]int, l.at+2), 0
	for name, from := range l.from {
		alive[from]++
		alive[l.to[name]+1]--
	}
	now := 0
	for _, change := range alive {
		now += change
		most = max(most, now)
	}
	for _, a := range k.Arrays {
		if a.Space == Private {
			most += a.Len * a.Width
		}
	}
	return most + plainRegisters
}

// Occupancy estimates which part of a multiprocessor's threads the kernel can have under
// way at once, by its threads, registers and shared memory.
func (k *Kernel) Occupancy() float64 {
	registers := (min(k.Registers(), 255) + 7) / 8 * 8 // given out by eights
	groups := min(maxGroups, maxThreads/k.Threads(), fileRegisters/(registers*k.Threads()), sharedMemory/(k.SharedBytes()+groupShared))
	return float64(groups*k.Threads()) / maxThreads
}

// lifetimes are the statements, by number, from which on and up to which variables are
// needed.
type lifetimes struct {
	at       int
	from, to map[string]int
}

func (l *lifetimes) block(body []Stmt) {
	for _, s := range body {
		l.at++
		EachNode(s, func(n scalar.Expr) {
			if _, ours := l.from[n.Name]; n.Op == scalar.OpVar && ours {
				l.to[n.Name] = l.at
			}
		})
		for _, name := range Defines(s) {
			l.from[name], l.to[name] = l.at, l.at
		}
		for _, name := range Assigns(s) {
			l.to[name] = l.at
		}
		switch s := s.(type) {
		case *For:
			l.loop(s)
		case *Roles:
			for _, r := range s.List {
				l.block(r.Body)
			}
		case *If:
			l.block(s.Then)
			l.block(s.Else)
		}
	}
}

// loop keeps what a loop needs of before it up to its end.
func (l *lifetimes) loop(s *For) {
	first := l.at
	l.block(s.Body)
	l.at++
	for name, to := range l.to {
		if l.from[name] <= first && to > first {
			l.to[name] = l.at
		}
	}
	l.to[s.Var] = l.at
}
