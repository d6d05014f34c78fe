// The copy button of a block with commands and what they print copies the commands alone.
document.addEventListener("click", (event) => {
    const button = event.target.closest(".clip-button");
    const code = button?.closest("pre")?.querySelector("code.language-console");
    if (!code || !navigator.clipboard) {
        return;
    }
    const commands = [];
    let goesOn = false;
    for (const line of code.textContent.split("\n")) {
        if (goesOn || line.startsWith("$ ")) {
            commands.push(goesOn ? line : line.slice(2));
            goesOn = line.endsWith("\\");
        }
    }
    event.stopImmediatePropagation();
    navigator.clipboard.writeText(commands.join("\n")).then(() => {
        button.classList.add("tooltipped");
        button.querySelector(".tooltiptext").innerText = "Copied!";
        button.addEventListener("mouseout", () => button.classList.remove("tooltipped"), { once: true });
    });
}, true);
