# Completion of zero-ckpt for bash. Commands, options and words are asked of the program itself, so nothing is written twice.
_zero_ckpt() {
    local tool=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} help words
    if [ "$COMP_CWORD" -eq 1 ]; then
        help=$("$tool" --help 2>/dev/null) || return
        mapfile -t COMPREPLY < <(compgen -W "--help $(sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p' <<< "$help")" -- "$word")
        return
    fi
    help=$("$tool" "${COMP_WORDS[1]}" --help 2>/dev/null) || return
    if [[ $before == --* ]] && words=$(sed -n "s/^ *$before [A-Z]*:{\(.*\)}.*/\1/p" <<< "$help") && [ -n "$words" ]; then
        mapfile -t COMPREPLY < <(compgen -W "${words//,/ }" -- "$word")
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(grep -o -- '^ *[-a-z,]*--[a-z-]*' <<< "$help" | grep -o -- '--.*')" -- "$word")
    else
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}
complete -F _zero_ckpt zero-ckpt
