package incident

// Mention is mention.
func (i *Incident) Mention(s Switch) bool { return i.mention(s) }
