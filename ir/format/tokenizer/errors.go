package tokenizer

import (
	"errors"
	"fmt"
)

// ErrDamaged is the kind of the errors for data that are no tokenizer: no JSON, parts that are missing
// or contradict each other, sizes beyond the bounds of the package.
var ErrDamaged = errors.New("damaged tokenizer")

// ErrUnknownToken is the kind of the errors for text that the vocabulary does not cover, where the
// tokenizer has no token for unknown text.
var ErrUnknownToken = errors.New("text outside the vocabulary")

func damaged(text string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(text, args...))
}
