package guard

// A budget is how often an attempt may be made again.
type budget struct {
	claim int  // until the operation has begun, if it makes a claim; 0 if it makes none
	work  int  // from then on
	begun bool // the operation, in some attempt
	used  int
}

func (b *budget) limit() int {
	if b.claim > 0 && !b.begun {
		return max(b.work, b.claim)
	}
	return b.work
}

// begin notes that the operation begins: the tries so far were of its claim.
func (b *budget) begin() {
	if b.claim > 0 && !b.begun {
		b.begun, b.used = true, 0
	}
}

// stores notes that the operation has ended, and that its refusal is stored: that may be tried as
// often as a claim.
func (b *budget) stores() { b.work, b.used = max(b.work, b.claim), 0 }

func (b *budget) spent() bool { return b.used >= b.limit() }
