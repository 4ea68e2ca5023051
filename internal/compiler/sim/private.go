package sim

// The elements of a private array belong to one thread, so that an access to one has no race and
// is not counted: that it is in bounds, and that a read follows a write, is all there is to check.

// loadPrivate returns the executor that reads one element per thread of a private array.
func loadPrivate(m *machine, a *array, at, out column) executor {
	if out.f != nil {
		return privateLoad(m, a, at.i, out.f, a.own.f)
	}
	return privateLoad(m, a, at.i, out.i, a.own.i)
}

func privateLoad[T number](m *machine, a *array, at []int64, out, own []T) executor {
	return func(active []int32) {
		for _, t := range active {
			elem := m.index(a, at[t], t)
			if elem < 0 {
				return
			}
			place := elem + int(t)*a.perLane
			if a.filled[place] != m.first {
				m.fail(Uninitialised, t, a.Name, elem, 0)
				return
			}
			out[t] = own[place]
		}
	}
}

// storePrivate returns the executor that writes one element per thread of a private array.
func storePrivate(m *machine, a *array, at, from column) executor {
	if from.f != nil {
		return privateStore(m, a, at.i, from.f, a.own.f)
	}
	return privateStore(m, a, at.i, from.i, a.own.i)
}

func privateStore[T number](m *machine, a *array, at []int64, from, own []T) executor {
	return func(active []int32) {
		for _, t := range active {
			elem := m.index(a, at[t], t)
			if elem < 0 {
				return
			}
			place := elem + int(t)*a.perLane
			a.filled[place], own[place] = m.first, from[t]
		}
	}
}
