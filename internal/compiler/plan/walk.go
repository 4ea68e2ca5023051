package plan

import "iter"

// Each yields steps in their order, each once, and after a loop those in it.
func Each(steps []Step) iter.Seq[Step] {
	return func(yield func(Step) bool) { each(steps, yield) }
}

func each(steps []Step, yield func(Step) bool) bool {
	for _, s := range steps {
		if !yield(s) {
			return false
		}
		goOn := true
		switch s := s.(type) {
		case *Repeat:
			goOn = each(s.Steps, yield) && each(s.Odd, yield)
		case *While:
			goOn = each(s.Steps, yield)
		}
		if !goOn {
			return false
		}
	}
	return true
}

// HasWhile reports whether steps have loops of unknown trip count.
func HasWhile(steps []Step) bool {
	for s := range Each(steps) {
		if _, is := s.(*While); is {
			return true
		}
	}
	return false
}
