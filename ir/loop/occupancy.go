package loop

import "github.com/rlx-go/rlx/ir/scalar"

// Resources of a multiprocessor of NVIDIA's server GPUs since Ampere and Hopper (CUDA C++
// Programming Guide, table of technical specifications).
const (
	maxThreads    = 2048
	maxGroups     = 32
	fileRegisters = 64 << 10
	sharedMemory  = 228 << 10
	groupShared   = 1 << 10 // reserved by the system per workgroup
	// plainRegisters covers addresses and intermediate values.
	plainRegisters = 16
)

// Registers estimates the 32-bit registers a thread of the kernel needs: the maximal number of
// variables live at once, plus some for intermediate values. A compiler may use fewer, by
// rematerialisation, or more, by loading ahead.
func (k *Kernel) Registers() int {
	l := liveRanges{from: map[string]int{}, to: map[string]int{}}
	l.block(k.Body)
	alive, peak := make([]int, l.at+2), 0
	for name, from := range l.from {
		alive[from]++
		alive[l.to[name]+1]--
	}
	now := 0
	for _, change := range alive {
		now += change
		peak = max(peak, now)
	}
	for _, a := range k.Arrays {
		if a.Space == Private {
			peak += a.Len * a.Width
		}
	}
	return peak + plainRegisters
}

// Occupancy estimates the fraction of a multiprocessor's threads that are resident, limited by
// the kernel's threads, registers and shared memory.
func (k *Kernel) Occupancy() float64 {
	registers := (min(k.Registers(), 255) + 7) / 8 * 8 // allocated in units of 8
	groups := min(maxGroups, maxThreads/k.Threads(), fileRegisters/(registers*k.Threads()), sharedMemory/(k.SharedBytes()+groupShared))
	return float64(groups*k.Threads()) / maxThreads
}

// liveRanges holds the live range of each variable, as numbers of its first and last statement.
type liveRanges struct {
	at       int
	from, to map[string]int
}

func (l *liveRanges) block(body []Stmt) {
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

// loop extends the live ranges of variables from before a loop that it uses to its end.
func (l *liveRanges) loop(s *For) {
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
