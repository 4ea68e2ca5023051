package plan

// EncodeUnchecked is [Encode] without validation, to make files of plans that
// are wrong.
func EncodeUnchecked(p *Plan) ([]byte, error) { return encode(p) }
