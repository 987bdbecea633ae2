package config

// OptionNames are the names of all single settings.
func OptionNames() []string { return names(options) }
