"""Objects of authors in other interpreters: a thin worker there that has numpy alone, and what stands for them here."""
